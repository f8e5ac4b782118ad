"""From a configuration to the objects of a run. Module-level functions, so that they pickle
into Launchpad's processes and a test can call each of them.
"""

from __future__ import annotations

import dataclasses
import json

import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.agents import registry
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import server_statistics
from seed_acme.inference import step_quota
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import loop_settings
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import training_loop
from seed_acme.loggers import composite
from seed_acme.loggers import csv_file
from seed_acme.loggers import own
from seed_acme.loggers import tensorboard
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from seed_acme.utils import counting
from seed_acme.utils import devices as devices_lib


@dataclasses.dataclass(frozen=True)
class Acting:
  """What computes actions: the specification, a policy for each inference device, and where their
  weights come from."""

  spec: types.EnvironmentSpec
  agent: agent_lib.Agent
  policies: tuple[policy_lib.Policy, ...]
  published: policy_lib.PublishedVariables
  devices: devices_lib.Devices

  @property
  def policy(self) -> policy_lib.Policy:
    """That of the first inference device; the others differ in nothing but the device."""
    return self.policies[0]

  def example_unroll(self, config: config_lib.ExperimentConfig) -> types.Unroll:
    """A numpy unroll of the right shapes."""
    return self.policy.example_unroll(config.agent.unroll_rows)


def make_acting(
  config: config_lib.ExperimentConfig,
  spec: types.EnvironmentSpec,
  devices: devices_lib.Devices | None = None,
) -> Acting:
  """Builds the network that acts in environments of this specification.

  devices: of a learner; None = where TensorFlow places things by itself.
  """
  devices = devices or devices_lib.default()
  agent = registry.get(config.agent.agent)(spec, config.network, config.agent)
  published = policy_lib.PublishedVariables()
  policies = []
  for device in devices.inference:
    with devices_lib.scope(device):
      policies.append(policy_lib.Policy(spec, agent.acting, published))
  return Acting(spec, agent, tuple(policies), published, devices)


def make_learner(
  config: config_lib.ExperimentConfig, acting: Acting, peers: peers_lib.Peers = peers_lib.ALONE
) -> learner_lib.Learner:
  """The learner with a network of its own, initialised from the seed.

  peers: the hosts that learn together; config is that of the whole run.
  """
  tf.random.set_seed(config.seed)
  devices = acting.devices.training
  with devices_lib.scope(devices[0]):
    return learner_lib.Learner(
      acting.agent,
      published=acting.policy.variables_read,
      total_steps=config.total_steps,
      seed=config.seed,
      xla=config.learner.xla,
      devices=devices,
      peers=peers,
    )


def make_inference_servers(
  config: config_lib.ExperimentConfig,
  layout: layout_lib.Layout,
  acting: Acting,
  sink: core.UnrollSink,
  counters: counting.Counters,
  statistics: server_statistics.ServerStatistics,
  host: int = 0,
) -> tuple[server_lib.InferenceServer, ...]:
  """One for each inference device of learner host `host`, handing finished unrolls to `sink`."""
  return tuple(
    server_lib.InferenceServer(
      spec=acting.spec,
      environment_name=config.environment.id,
      policy=policy,
      num_training=layout.num_training,
      num_environments=layout.num_environments,
      unroll_length=config.agent.unroll_length,
      overlap=config.agent.overlap,
      batch_size=device.rows,
      seed=config.seed,
      sink=sink,
      counters=counters,
      quota=_make_quota(layout),
      statistics=statistics,
    )
    for device, policy in zip(layout.learners[host].devices, acting.policies)
  )


def _make_quota(layout: layout_lib.Layout) -> step_quota.StepQuota | None:
  if not layout.unrolls_per_update:
    return None
  return step_quota.StepQuota(layout.num_training, layout.unrolls_per_update)


def make_training_loop(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory,
  acting: Acting,
  inference: server_statistics.ServerStatistics,
  counters: counting.Counters,
  memory: core.ReplayMemory | None,
  peers: peers_lib.Peers = peers_lib.ALONE,
) -> training_loop.TrainingLoop:
  """The loop with its learner and its logs, which the chief of `peers` alone has."""
  csv = csv_file.CsvLogger(run.metrics)
  logger = _logger(config, run, csv) if peers.is_chief else composite.CompositeLogger([])
  return training_loop.TrainingLoop(
    make_loop_settings(config),
    run,
    learner=make_learner(config, acting, peers),
    inference=inference,
    published=acting.published,
    counters=counters,
    csv=csv,
    logger=logger,
    memory=memory,
    peers=peers,
  )


def make_loop_settings(config: config_lib.ExperimentConfig) -> loop_settings.LoopSettings:
  """What the training loop is told of the experiment."""
  flat = saved_config.flatten(config)
  return loop_settings.LoopSettings(
    total_steps=config.total_steps,
    max_wall_s=config.max_wall_s,
    batch_size=config.agent.batch_size,
    min_unrolls=config.agent.replay_spec().min_size,
    publish_period=config.inference.publish_period,
    log_period_s=config.learner.log_period_s,
    checkpoint=config.checkpoint,
    initial_checkpoint=config.initial_checkpoint,
    is_filmed=bool(config.record_every),
    common={k: str(v) for k, v in flat.items() if k not in saved_config.MAY_CHANGE_ON_RESUME},
  )


def _logger(
  config: config_lib.ExperimentConfig, run: run_directory.RunDirectory, csv: csv_file.CsvLogger
) -> composite.CompositeLogger:
  """To all places at once: the file, TensorBoard, and those that the configuration names."""
  events = tensorboard.TensorBoardLogger(run.tensorboard)
  events.write_text('config', json.dumps(saved_config.to_json(config), indent=2))
  return composite.CompositeLogger([csv, events, *own.make(config, run)])
