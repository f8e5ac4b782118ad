"""Every value of the Atari configurations, and its source.

The values are literals on purpose: a default that changes anywhere, and a field that is added
anywhere, has to be entered here, with its source.
"""

from typing import Any, NamedTuple

R2D2, VTRACE = 'atari_r2d2', 'atari_vtrace'
ALL = (R2D2, VTRACE)


class Row(NamedTuple):
  """A value of one or more configurations.

  provenance: code = read in the authors' code or documents, paper = quoted from the paper by a
    source that docs/reproduction.md names, unverified = ascribed to the paper but not compared with
    it, own = ours.
  """

  configs: str | tuple[str, ...]
  field: str
  value: Any
  provenance: str
  note: str = ''


SUMMED = 'the paper sums its loss over 32 x 20 steps and ours is a mean'
TABLE = (
  # Amount of training, and number of environments.
  Row(ALL, 'environment.id', 'atari:Pong', 'own', 'one game a run; choose any of the 57'),
  Row(R2D2, 'total_frames', 40_000_000_000, 'code', 'gcp/train_atari.sh says 50e9'),
  Row(R2D2, 'total_steps', 10_000_000_000, 'own', 'total_frames / frames_per_step'),
  Row(VTRACE, 'total_frames', 200_000_000, 'unverified'),
  Row(VTRACE, 'total_steps', 50_000_000, 'own', 'total_frames / frames_per_step'),
  Row(R2D2, 'num_training_environments', 610, 'paper', '640 with those of evaluation'),
  Row(R2D2, 'num_actors', 61, 'own', 'one environment an actor there'),
  Row(R2D2, 'environments_per_actor', 10, 'own', 'one environment an actor there'),
  Row(R2D2, 'num_evaluation_environments', 30, 'code'),
  Row(R2D2, 'inference_batch_size', 64, 'unverified', 'gcp/train_atari.sh says 32'),
  Row(VTRACE, 'num_training_environments', 128, 'own'),
  Row(VTRACE, 'num_actors', 4, 'own'),
  Row(VTRACE, 'environments_per_actor', 32, 'own'),
  Row(VTRACE, 'num_evaluation_environments', 0, 'own'),
  Row(VTRACE, 'inference_batch_size', 64, 'own', 'half of the environments; theirs act alone'),
  # The environment: the settings in effect, defaults included.
  Row(
    R2D2,
    'settings.frames_per_step',
    4,
    'code',
    'the default there until August 2020, 1 since; maximum of the last two frames, each '
    'made gray first, as in the released runs; the paper made the maximum gray',
  ),
  Row(VTRACE, 'settings.frames_per_step', 4, 'paper', 'maximum of the last two frames'),
  Row(R2D2, 'settings.image_size', 84, 'code', 'area interpolation instead of bilinear'),
  Row(VTRACE, 'settings.image_size', 84, 'paper', 'gray; interpolation: area, theirs unknown'),
  Row(R2D2, 'settings.max_num_noops', 30, 'code', 'uniform from 1, before the first step'),
  Row(VTRACE, 'settings.max_num_noops', 30, 'unverified'),
  Row(R2D2, 'settings.repeat_action_probability', 0.0, 'code', 'no sticky actions'),
  Row(VTRACE, 'settings.repeat_action_probability', 0.0, 'unverified', 'no sticky actions'),
  Row(R2D2, 'settings.full_action_set', True, 'code', '18 actions'),
  Row(VTRACE, 'settings.full_action_set', True, 'unverified', '18 actions'),
  Row(
    R2D2,
    'settings.max_frames',
    108_000,
    'code',
    'ends there by truncation, which bootstraps; by termination in the original. No end '
    'at the loss of a life in either',
  ),
  Row(
    VTRACE,
    'settings.max_frames',
    108_000,
    'unverified',
    'ends there by truncation. The paper also ends an episode at the loss of a life; ours does not',
  ),
  Row(R2D2, 'settings.life_loss', 'ignore', 'code'),
  Row(VTRACE, 'settings.life_loss', 'ignore', 'own', 'cut comes near the paper, see max_frames'),
  Row(R2D2, 'settings.fire_at_start', False, 'code'),
  Row(VTRACE, 'settings.fire_at_start', False, 'unverified'),
  Row(ALL, 'settings.stack', 1, 'own', 'the network stacks, see frame_stack'),
  Row(ALL, 'settings.vectorized', True, 'own', 'ale-py; the paper of R2D2 used xitari'),
  Row(ALL, 'settings.num_threads', 1, 'own'),
  # The network.
  Row(R2D2, 'network.torso', 'nature_cnn', 'code'),
  Row(VTRACE, 'network.torso', 'impala_shallow', 'unverified', 'figure 3, left'),
  Row(R2D2, 'network.torso_output_size', 512, 'code'),
  Row(VTRACE, 'network.torso_output_size', 256, 'unverified'),
  Row(ALL, 'network.precision', 'auto', 'own', 'of the convolutions only; the papers used float32'),
  Row(ALL, 'network.byte_scale', 'bound', 'code', '255 for screens, whose bound it is'),
  Row(R2D2, 'network.frame_stack', 4, 'code', 'newest first, zeros before the episode'),
  Row(VTRACE, 'network.frame_stack', 4, 'paper'),
  Row(R2D2, 'network.core', 'lstm', 'code'),
  Row(VTRACE, 'network.core', 'none', 'unverified', 'with LSTM on DMLab only'),
  Row(R2D2, 'network.core_size', 512, 'code'),
  Row(VTRACE, 'network.core_size', 256, 'own', 'not used without a core'),
  Row(R2D2, 'network.previous_action_input', True, 'code', 'one-hot; nothing at FIRST'),
  Row(VTRACE, 'network.previous_action_input', False, 'unverified'),
  Row(R2D2, 'network.previous_reward_input', True, 'code'),
  Row(VTRACE, 'network.previous_reward_input', False, 'unverified'),
  Row(R2D2, 'network.previous_reward_bound', 0.0, 'code', 'as it is'),
  Row(VTRACE, 'network.previous_reward_bound', 1.0, 'own', 'not used without the input'),
  Row(R2D2, 'network.head_sizes', (512,), 'code', 'dueling, of value and advantage each'),
  Row(VTRACE, 'network.head_sizes', (), 'code', 'one dense layer each'),
  Row(ALL, 'network.mlp_sizes', (64, 64), 'own', 'not used by these torsos'),
  Row(R2D2, 'network.activation', 'relu', 'code', 'of the hidden layers of the heads'),
  Row(VTRACE, 'network.activation', 'relu', 'own', 'not used without hidden layers'),
  Row(ALL, 'network.torso_initializer', 'default', 'code', "Keras's default, Glorot's"),
  Row(ALL, 'network.initializer', 'glorot_uniform', 'code', "Keras's default"),
  Row(ALL, 'network.hidden_gain', 0.0, 'own', 'as the initializer says'),
  Row(ALL, 'network.policy_head_gain', 1.0, 'own', 'as the initializer says'),
  Row(ALL, 'network.value_head_gain', 1.0, 'own', 'as the initializer says'),
  Row(ALL, 'network.separate_value_network', False, 'code'),
  Row(ALL, 'network.module', '', 'own', 'none'),
  # The optimiser.
  Row(R2D2, 'agent.optimizer.name', 'adam', 'code'),
  Row(R2D2, 'agent.optimizer.learning_rate', 1e-4, 'code', 'the flag defaults to 4.8e-4'),
  Row(R2D2, 'agent.optimizer.schedule', 'constant', 'code'),
  Row(R2D2, 'agent.optimizer.final_share', 0.0, 'own', 'not used by a constant rate'),
  Row(
    R2D2,
    'agent.optimizer.epsilon',
    1e-3,
    'code',
    "Sonnet's Adam adds it after the bias correction, Keras's before: the first updates differ",
  ),
  Row(R2D2, 'agent.optimizer.adam_beta1', 0.9, 'code', "Keras's default"),
  Row(R2D2, 'agent.optimizer.adam_beta2', 0.999, 'code', "Keras's default"),
  Row(R2D2, 'agent.optimizer.max_gradient_norm', 80.0, 'code', 'the flag defaults to 40'),
  Row(R2D2, 'agent.optimizer.rmsprop_decay', 0.99, 'own', 'not used by Adam'),
  Row(R2D2, 'agent.optimizer.rmsprop_momentum', 0.0, 'own', 'not used by Adam'),
  Row(
    VTRACE,
    'agent.optimizer.name',
    'rmsprop',
    'paper',
    "Sonnet's mean square starts at 0, that of TensorFlow 1 at 1: the first updates are larger",
  ),
  Row(VTRACE, 'agent.optimizer.learning_rate', 6e-4, 'paper'),
  Row(VTRACE, 'agent.optimizer.schedule', 'linear', 'paper'),
  Row(VTRACE, 'agent.optimizer.final_share', 0.0, 'paper', 'down to 0 over the run'),
  Row(
    VTRACE,
    'agent.optimizer.epsilon',
    0.01 / 640**2,
    'paper',
    f'0.01 / 640^2, within the root: {SUMMED}',
  ),
  Row(VTRACE, 'agent.optimizer.max_gradient_norm', 40 / 640, 'paper', f'40 / 640: {SUMMED}'),
  Row(VTRACE, 'agent.optimizer.rmsprop_decay', 0.99, 'code', 'default there, for DMLab'),
  Row(VTRACE, 'agent.optimizer.rmsprop_momentum', 0.0, 'paper'),
  Row(VTRACE, 'agent.optimizer.adam_beta1', 0.9, 'own', 'not used by RMSProp'),
  Row(VTRACE, 'agent.optimizer.adam_beta2', 0.999, 'own', 'not used by RMSProp'),
  # R2D2.
  Row(R2D2, 'agent.agent', 'r2d2', 'own', 'the name here'),
  Row(R2D2, 'agent.unroll_length', 80, 'code', 'the flag defaults to 100'),
  Row(
    R2D2,
    'agent.overlap',
    40,
    'code',
    'burn-in; the stored state is that of row 0, 40 steps later in the original',
  ),
  Row(R2D2, 'agent.batch_size', 64, 'code'),
  Row(R2D2, 'agent.replay', 'prioritized', 'code'),
  Row(R2D2, 'agent.replay_capacity', 100_000, 'code', 'unrolls; the flag defaults to 100'),
  Row(R2D2, 'agent.replay_min_size', 5_000, 'code', 'unrolls; the flag defaults to 10'),
  Row(R2D2, 'agent.replay_ratio', 0.75, 'code', 'the flag defaults to 1.5'),
  Row(R2D2, 'agent.priority_exponent', 0.9, 'code'),
  Row(R2D2, 'agent.importance_exponent', 0.6, 'code'),
  Row(R2D2, 'agent.discount', 0.997, 'code'),
  Row(R2D2, 'agent.num_bootstrap_steps', 5, 'code'),
  Row(R2D2, 'agent.target_period', 2_500, 'code', 'updates'),
  Row(R2D2, 'agent.rescaling_epsilon', 1e-3, 'code'),
  Row(
    R2D2,
    'agent.max_priority_share',
    0.9,
    'code',
    'a first priority takes the greedy action for the target, the original the one played',
  ),
  Row(R2D2, 'agent.epsilon_base', 0.4, 'code'),
  Row(R2D2, 'agent.epsilon_exponent', 7.0, 'code'),
  Row(R2D2, 'agent.evaluation_epsilon', 1e-3, 'code', 'also of seed-acme evaluate'),
  Row(R2D2, 'agent.max_abs_reward', 0.0, 'code', 'off'),
  # V-trace.
  Row(VTRACE, 'agent.agent', 'on_policy', 'own', 'its preset vtrace'),
  Row(VTRACE, 'agent.unroll_length', 20, 'paper'),
  Row(VTRACE, 'agent.overlap', 0, 'code'),
  Row(VTRACE, 'agent.batch_size', 32, 'paper'),
  Row(VTRACE, 'agent.discount', 0.99, 'paper'),
  Row(VTRACE, 'agent.value_cost', 0.5, 'paper', 'of half the squared error, as there'),
  Row(VTRACE, 'agent.entropy.weight', 0.01, 'paper'),
  Row(VTRACE, 'agent.max_abs_reward', 1.0, 'paper', 'rewards clipped to [-1, 1] in the loss'),
  Row(VTRACE, 'agent.lambda_', 1.0, 'code'),
  Row(VTRACE, 'agent.rho_clip', 1.0, 'code'),
  Row(VTRACE, 'agent.c_clip', 1.0, 'code'),
  Row(VTRACE, 'agent.policy_rho_clip', 1.0, 'code'),
  Row(VTRACE, 'agent.entropy.threshold', None, 'code', 'fixed weight'),
  Row(VTRACE, 'agent.kl_cost', 0.0, 'code', 'off'),
)
