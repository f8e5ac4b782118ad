"""Configuration of an experiment: frozen dataclasses, composed in `configs/*.py`.

Nothing here reads a flag or a file (see `programs/command_line/`, `storage/saved_config.py`). The
runtime's defaults are here, an agent's are in its `config.py`; each is in one line only.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, Union

from seed_acme import core
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import conditions

Setting = Union[bool, int, float, str]
_BELOW_ONE = bounds.Bound(0, 1, is_open_above=True)  # for decay rates
_WITH_ADAM = conditions.only_with('name', 'adam')
_WITH_RMSPROP = conditions.only_with('name', 'rmsprop')


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
  """The environment and its settings.

  id: `catch`, `memory_chain`, `bit_flip`, `toy`, `toy_memory`, `atari:Pong`, a gym id
    (`CartPole-v1`, `HalfCheetah-v4`, `gym:CartPole-v1`), `gymnasium:CartPole-v1`,
    `dm_control:cheetah/run`, `dmlab:rooms_watermaze`, `dmlab2d:pushbox`,
    `football:academy_empty_goal_close`, `envpool:Pong-v5`, or `package.module:factory`, your own
    function `factory(seed, **settings)` that returns a dm_env, gym or gymnasium environment.
  settings: keyword arguments of the environment, `rows 10 columns 5` on the command line.
  """

  id: str
  settings: dict[str, Setting] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
  """The network: torso -> core -> heads.

  torso: `mlp`, `auto` (a CNN for each picture of the observation, an MLP for the rest),
    `nature_cnn`, `impala_shallow`, `rllib_42` (images of 42 x 42), `impala_resnet`,
    `football_resnet`, `impala_resnet_instruction` (an image and words), or `package.module:Class`,
    your own Sonnet module from an observation to features.
  torso_settings: keyword arguments of your own torso, `size 128 layers 2` on the command line.
  mlp_sizes: units of each hidden layer of the `mlp` torso, and of the MLP in `auto`.
  torso_output_size: units of the last layer of the convolutional torsos.
  byte_scale: number that uint8 observations are divided by: `bound` = the upper bound of their
    space; `255` = 255, as in earlier versions, which differs only for bounds below 255; `1` = none,
    so that a network sees numbers up to 255, as in RLlib's runs on Atari.
  torso_initializer: initializer of convolutional torsos; `default` = as published, `orthogonal` =
    with gain sqrt(2).
  core: recurrent core, which carries state from row to row; `none` = a network without memory.
  core_size: units of the recurrent core.
  head_sizes: units of the hidden layers of each head; none by default.
  activation, initializer: used by the dense layers of the `mlp` torso and of the heads.
  hidden_gain: factor of the initial weights of these hidden layers. 0 = sqrt(2) for `orthogonal`
    with any activation but tanh, else 1.
  policy_head_gain, value_head_gain: factor of the initial weights of the last layer.
  separate_value_network: give an actor-critic's value its own torso and core.
  previous_action_input: feed the previous action, one-hot, to the core; without a core to the
    heads, beside the torso's features.
  previous_reward_input: feed the previous reward to the same.
  previous_reward_bound: this reward is clipped to [-bound, bound]; 0 = no clipping.
  frame_stack: images that the torso sees as channels, the newest and those before it in the
    episode; needs one image of one channel as the observation.
  precision: number format of convolutional torsos; weights, features and all else are float32.
    `auto` = `bfloat16` if the processor supports it natively (avx512_bf16), else `float32`.
  module: `package.module:factory` of a whole network, `factory(spec, config)`; the
    other fields are then only passed on.
  """

  torso: str = 'mlp'
  torso_settings: dict[str, Setting] = dataclasses.field(default_factory=dict)
  mlp_sizes: Annotated[tuple[int, ...], bounds.at_least(1)] = (64, 64)
  torso_output_size: Annotated[int, bounds.at_least(1)] = 256
  byte_scale: Literal['bound', '255', '1'] = 'bound'
  torso_initializer: Literal['default', 'orthogonal'] = 'default'
  core: Literal['none', 'lstm', 'gru'] = 'none'
  core_size: Annotated[int, bounds.at_least(1), conditions.only_without('core', 'none')] = 256
  previous_action_input: bool = False
  previous_reward_input: bool = False
  previous_reward_bound: Annotated[
    float, bounds.at_least(0), conditions.only_with('previous_reward_input', True)
  ] = 1.0
  head_sizes: Annotated[tuple[int, ...], bounds.at_least(1)] = ()
  activation: Literal['relu', 'tanh', 'swish', 'elu'] = 'relu'
  initializer: Literal['glorot_uniform', 'lecun_normal', 'orthogonal'] = 'glorot_uniform'
  hidden_gain: Annotated[float, bounds.at_least(0)] = 0.0
  policy_head_gain: Annotated[float, bounds.at_least(0)] = 1.0
  value_head_gain: Annotated[float, bounds.at_least(0)] = 1.0
  separate_value_network: bool = False
  frame_stack: Annotated[int, bounds.at_least(1)] = 1
  precision: Literal['auto', 'float32', 'bfloat16'] = 'auto'
  module: str = ''


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
  """The optimizer.

  name: the algorithm.
  learning_rate: step size.
  schedule: learning rate over `total_steps` of the experiment; `linear` goes down to `final_share`.
  final_share: share of the learning rate at which `linear` ends.
  adam_beta1, adam_beta2: decay of the mean gradient and of its mean square, for `adam`.
  rmsprop_decay: decay of the mean square of the gradient, for `rmsprop`.
  rmsprop_momentum: momentum, for `rmsprop`.
  epsilon: keeps a step finite where gradients are small. `adam` adds it to the root of the mean
    square, `rmsprop` to the mean square within the root.
  max_gradient_norm: global norm above which gradients are scaled down; 0 = off.
  """

  name: Literal['adam', 'rmsprop'] = 'adam'
  learning_rate: Annotated[float, bounds.at_least(0)] = 3e-4
  schedule: Literal['constant', 'linear'] = 'constant'
  final_share: Annotated[float, bounds.SHARE, conditions.only_with('schedule', 'linear')] = 0.0
  adam_beta1: Annotated[float, _BELOW_ONE, _WITH_ADAM] = 0.9
  adam_beta2: Annotated[float, _BELOW_ONE, _WITH_ADAM] = 0.999
  rmsprop_decay: Annotated[float, _BELOW_ONE, _WITH_RMSPROP] = 0.99
  rmsprop_momentum: Annotated[float, _BELOW_ONE, _WITH_RMSPROP] = 0.0
  epsilon: Annotated[float, bounds.above(0)] = 1e-7
  max_gradient_norm: Annotated[float, bounds.at_least(0)] = 40.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig:
  """Fields and methods that every agent's configuration has.

  agent: its name in `agents/registry.py`, or `package.module:make_agent` of your own.
  unroll_length: transitions in an unroll, T.
  overlap: extra rows at the head of an unroll, shared with the previous one (burn-in).
  batch_size: unrolls in one update, B.
  """

  agent: str
  unroll_length: Annotated[int, bounds.at_least(1)]
  overlap: Annotated[int, bounds.at_least(0)]
  batch_size: Annotated[int, bounds.at_least(1)]

  def check(self, experiment: ExperimentConfig) -> None:
    """Raises `types.UserError` for the agent's own values that cannot work; the runtime has checked
    all others."""

  def check_environment(self, spec: types.EnvironmentSpec) -> None:
    """Raises `types.UserError` for an environment that the agent cannot act in; imports no
    TensorFlow."""

  def notices(self, spec: types.EnvironmentSpec) -> tuple[str, ...]:
    """Returns notices to show when a run in such environments starts; imports no TensorFlow."""
    del spec
    return ()

  def replay_spec(self) -> core.ReplaySpec:
    """Describes the replay that the agent learns from."""
    return core.ReplaySpec()

  def with_batch_size(self, batch_size: int) -> AgentConfig:
    """Returns a configuration with another batch size; fields that must divide it are adjusted."""
    return dataclasses.replace(self, batch_size=batch_size)

  @property
  def unroll_rows(self) -> int:
    """Number of rows in an unroll."""
    return self.overlap + self.unroll_length + 1


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
  """Replay and its Reverb servers.

  queue_size: unrolls that a FIFO table holds before it blocks the actors; unused by a memory.
  unrolls_per_item: unrolls stored as one Reverb item, which costs less for small observations;
    divides the batch size; 0 = a whole batch. A replay memory needs 1.
  writer_backlog: finished unrolls that may wait to be written before actors wait; 0 = one batch.
  prefetch_batches: batches prepared before the learner asks for them; 0 = none, which gives the
    least policy lag. Reverb holds one more item, or one more batch in a separate process.
  num_shards: Reverb servers per learner host, over which its actors are spread.
  separate_process: run each Reverb server in its own node.
  port: port of the first Reverb server; others get the next ones. 0 = any free ports.
  """

  queue_size: int = 256
  unrolls_per_item: Annotated[int, bounds.at_least(0)] = 1
  writer_backlog: Annotated[int, bounds.at_least(0)] = 0
  prefetch_batches: Annotated[int, bounds.at_least(0)] = 1
  num_shards: Annotated[int, bounds.at_least(1)] = 1
  separate_process: bool = False
  port: Annotated[int, bounds.at_least(0)] = 0


@dataclasses.dataclass(frozen=True)
class InferenceConfig:
  """The batched inference server.

  batch_size: number of rows at which a batch is run immediately; 0 = half of the training
    environments, in whole groups, so that one half steps while the other half's actions are
    computed; all of them, if they step as one group. With several inference devices, of those that
    each one serves.
  timeout_ms: time after which a smaller batch is run.
  publish_period: learner updates between two publications of the weights.
  strictly_on_policy: every update learns only from rows that were acted with the weights it starts
    from, equally many from each environment; environments wait while the learner trains.
    `agent.batch_size` must be a multiple of the number of training environments.
  """

  batch_size: Annotated[int, bounds.at_least(0)] = 0
  timeout_ms: Annotated[float, bounds.at_least(0)] = 5.0
  publish_period: Annotated[int, bounds.at_least(1)] = 1
  strictly_on_policy: bool = False


@dataclasses.dataclass(frozen=True)
class ActorConfig:
  """Actors and their supervisors.

  environment_groups: 2 = each actor steps one half of its environments while the other
    half's actions are computed; pays if each actor has a CPU core of its own and environments
    are slow (docs/performance.md).
  max_failures: consecutive failures of one actor's worker before the run ends.
  connect_timeout_s: how long an actor waits for a server that has disappeared. If the learner is
    on another host, it also limits the wait for the learner's first answer; on one machine that
    wait has no limit, because the launcher ends the actors if the learner dies.
  step_timeout_s: time after which a group of environments that is in one step counts as hung, and
    the worker is restarted; 0 = no limit.
  reset_timeout_s: the same limit for making environments, for a reset, and for a step in which an
    episode begins. Simulators take up to two minutes to start, and a group's start one by one.
  python: path of the interpreter that environments run under, 3.10 to 3.13; '' = that of the
    learner. `seed-acme actor-env` makes one. A relative path is looked up from the working folder,
    the checkout, and the folder of the virtual environment.
  """

  environment_groups: Literal[1, 2] = 1
  max_failures: Annotated[int, bounds.at_least(1)] = 3
  connect_timeout_s: Annotated[float, bounds.at_least(0)] = 60.0
  step_timeout_s: Annotated[float, bounds.at_least(0)] = 60.0
  reset_timeout_s: Annotated[float, bounds.at_least(0)] = 300.0
  python: str = ''


@dataclasses.dataclass(frozen=True)
class TransportConfig:
  """The transport between actors and the inference server.

  kind: `auto` = a Unix socket in the run folder if learner and actors share a host, gRPC between
    hosts. `grpc` = gRPC everywhere. Both send flat arrays and unpickle nothing. `courier` is
    Launchpad's transport, for runs on one machine only: it unpickles what callers with the token
    send.
  host: address that the learner binds.
  port: port that the learner listens on; 0 = any free one.
  """

  kind: Literal['auto', 'grpc', 'courier'] = 'auto'
  host: str = '127.0.0.1'
  port: Annotated[int, bounds.at_least(0)] = 0


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
  """Checkpoints: when they are written, and what they contain.

  period_s: seconds between checkpoints.
  keep: number of newest checkpoints to keep.
  keep_best: also keep the checkpoint with the best evaluation return, if the run evaluates
    (num_evaluation_environments).
  replay: save the replay memory too, with the newest checkpoint only; a queue is never saved.
  """

  period_s: Annotated[float, bounds.at_least(0)] = 60.0
  keep: Annotated[int, bounds.at_least(1)] = 3
  keep_best: bool = True
  replay: bool = True


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
  """The learner's process.

  tensorflow_threads: threads of TensorFlow's operations, shared by training and inference; 1 is
    cheapest for small networks, 2 suit convolutions (docs/performance.md). 0 = TensorFlow's choice.
  log_period_s: seconds between two rows of the logs.
  stall_s: seconds without progress after which the progress line says what the run waits for; 0 =
    never.
  xla: compile the gradient step, which takes some seconds at first and is then up to twice as fast
    on small dense networks. It saves nothing with a loss that sorts, and cannot compile an LSTM. On
    a CPU, convolutions become many times slower.
  training_devices: devices that train, by name (`gpu:0,gpu:1`) or as a number of GPUs; '' = those
    that do not act, or all there are (docs/scaling.md).
  inference_devices: devices that act; '' = the last GPU, or those that do not train.
  host_timeout_s: with several learner hosts, time without one of them after which the run ends.
  logger: logger in addition to metrics.csv and TensorBoard: wandb, mlflow, or
    `package.module:factory`, your own function `factory(config, run_dir)` that returns a
    `core.Logger`; '' = none.
  """

  tensorflow_threads: Annotated[int, bounds.Bound(0, 1024)] = 1
  log_period_s: Annotated[float, bounds.at_least(0)] = 1.0
  stall_s: Annotated[float, bounds.at_least(0)] = 60.0
  xla: bool = False
  training_devices: str = ''
  inference_devices: str = ''
  host_timeout_s: Annotated[float, bounds.at_least(0)] = 60.0
  logger: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
  """One experiment: its length, its size and its parts.

  name: name of the configuration, and of the run folder.
  seed: seed of everything random.
  num_learner_hosts: processes that act and learn together, each with its own actors and replay.
  num_actors: processes that step environments.
  environments_per_actor: training environments in each actor.
  total_steps: agent steps (unmasked transitions) after which the run ends.
  max_wall_s: seconds after which the run ends; 0 = no limit.
  initial_checkpoint: run folder, packed run or checkpoint whose weights to start from: RUN (its
    newest checkpoint), RUN@best, RUN@NUMBER (of updates), FILE.zip; '' = none.
  num_evaluation_environments: environments that are played greedily during training.
  record_every: agent steps from one filmed evaluation episode to the next; 0 = no films. Only for
    runs on one machine, because actors write films into the run folder.
  agent: the agent and its settings.
  """

  name: str
  seed: Annotated[int, bounds.Bound(0, 2**64 - 1)] = 1
  num_learner_hosts: Annotated[int, bounds.at_least(1)] = 1
  num_actors: Annotated[int, bounds.at_least(1)] = 2
  environments_per_actor: Annotated[int, bounds.at_least(1)] = 32
  num_evaluation_environments: Annotated[int, bounds.at_least(0)] = 0
  record_every: Annotated[int, bounds.at_least(0)] = 0
  total_steps: Annotated[int, bounds.at_least(1)] = 1_000_000
  max_wall_s: Annotated[float, bounds.at_least(0)] = 0.0
  initial_checkpoint: str = ''
  environment: EnvironmentConfig
  network: NetworkConfig = NetworkConfig()
  agent: AgentConfig
  replay: ReplayConfig = ReplayConfig()
  inference: InferenceConfig = InferenceConfig()
  actor: ActorConfig = ActorConfig()
  transport: TransportConfig = TransportConfig()
  learner: LearnerConfig = LearnerConfig()
  checkpoint: CheckpointConfig = CheckpointConfig()
