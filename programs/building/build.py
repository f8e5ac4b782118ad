"""Constructors of a run's objects from the sections of its configuration."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

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
from seed_acme.inference import unroll_quota
from seed_acme.learning import learner as learner_lib
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import training_loop
from seed_acme.loggers import composite
from seed_acme.loggers import csv_file
from seed_acme.loggers import own
from seed_acme.loggers import tensorboard
from seed_acme.parallel import devices as devices_lib
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.system import leftovers
from seed_acme.progress import counting
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


@dataclasses.dataclass(frozen=True)
class Acting:
  """The acting side of an agent: the specification, a policy for each inference device, and the
  published variables that they read.

  unroll_length, overlap: T transitions that the agent learns from in each unroll, and burn-in rows
    before them; an unroll has overlap + T + 1 rows.
  """

  spec: types.EnvironmentSpec
  agent: agent_lib.Agent
  policies: tuple[policy_lib.Policy, ...]
  published: policy_lib.PublishedVariables
  devices: devices_lib.Devices
  unroll_length: int
  overlap: int

  @property
  def policy(self) -> policy_lib.Policy:
    """The policy of the first inference device; the others differ only in their device."""
    return self.policies[0]

  def example_unroll(self) -> types.Unroll:
    """Returns a numpy unroll of the right shapes and dtypes."""
    return self.policy.example_unroll(self.overlap + self.unroll_length + 1)


def make_acting(
  config: config_lib.AgentConfig,
  network: config_lib.NetworkConfig,
  spec: types.EnvironmentSpec,
  devices: devices_lib.Devices | None = None,
) -> Acting:
  """Builds the network that acts in environments with this specification.

  devices: the devices of a learner; None = TensorFlow's default placement.
  """
  devices = devices or devices_lib.default()
  agent = registry.get(config.agent)(spec, network, config)
  published = policy_lib.PublishedVariables()
  policies = []
  for device in devices.inference:
    with devices_lib.scope(device):
      policies.append(policy_lib.Policy(spec, agent.acting, published))
  return Acting(
    spec, agent, tuple(policies), published, devices, config.unroll_length, config.overlap
  )


def make_learner(
  acting: Acting,
  seed: int,
  total_steps: int,
  xla: bool = False,
  peers: peers_lib.Peers = peers_lib.ALONE,
) -> learner_lib.Learner:
  """Builds the learner with a network of its own, initialised from the seed.

  seed, total_steps: of the whole run. xla: as in `config.LearnerConfig`. peers: the learner hosts
    that train together.
  """
  tf.random.set_seed(seed)
  devices = acting.devices.training
  with devices_lib.scope(devices[0]):
    return learner_lib.Learner(
      acting.agent,
      published=acting.policy.variables_read,
      total_steps=total_steps,
      seed=seed,
      xla=xla,
      devices=devices,
      peers=peers,
    )


def make_inference_servers(
  environment_name: str,
  layout: layout_lib.Layout,
  acting: Acting,
  sink: core.UnrollSink,
  counters: counting.Counters,
  statistics: server_statistics.ServerStatistics,
  host: int = 0,
  checks_values: bool = True,
) -> tuple[server_lib.InferenceServer, ...]:
  """Builds a server for each inference device of a learner host; `sink` takes finished unrolls."""
  return tuple(
    server_lib.InferenceServer(
      spec=acting.spec,
      environment_name=environment_name,
      policy=policy,
      num_training=layout.num_training,
      num_environments=layout.num_environments,
      unroll_length=acting.unroll_length,
      overlap=acting.overlap,
      batch_size=device.rows,
      seed=layout.seed,
      sink=sink,
      counters=counters,
      quota=_make_quota(layout),
      statistics=statistics,
      checks_values=checks_values,
    )
    for device, policy in zip(layout.learners[host].devices, acting.policies)
  )


def _make_quota(layout: layout_lib.Layout) -> unroll_quota.UnrollQuota | None:
  if not layout.unrolls_per_update:
    return None
  return unroll_quota.UnrollQuota(layout.num_training, layout.unrolls_per_update)


def make_training_loop(
  sections: sections_lib.LearnerSections,
  run: run_directory.RunDirectory,
  acting: Acting,
  inference: server_statistics.ServerStatistics,
  counters: counting.Counters,
  memory: core.ReplayMemory | None,
  peers: peers_lib.Peers = peers_lib.ALONE,
) -> training_loop.TrainingLoop:
  """Builds the loop with its learner; only the chief of `peers` gets loggers."""
  csv = csv_file.CsvLogger(run.metrics)
  logger = _logger(sections.record, run, csv) if peers.is_chief else composite.CompositeLogger([])
  settings, seed = sections.loop, sections.layout.seed
  return training_loop.TrainingLoop(
    settings,
    run,
    learner=make_learner(acting, seed, settings.total_steps, sections.learner.xla, peers),
    inference=inference,
    published=acting.published,
    counters=counters,
    csv=csv,
    logger=logger,
    memory=memory,
    peers=peers,
  )


def _logger(
  record: dict[str, Any], run: run_directory.RunDirectory, csv: csv_file.CsvLogger
) -> composite.CompositeLogger:
  """Builds a logger that writes to the file, to TensorBoard, and to the configured loggers."""
  events = tensorboard.TensorBoardLogger(run.tensorboard)
  events.write_text('config', json.dumps(record, indent=2))
  config = saved_config.from_json(record)
  if not config.learner.logger:
    return composite.CompositeLogger([csv, events])
  # Programs that it starts are no leftovers of environments: wandb's sends what the last rows were.
  with leftovers.of_others():
    configured = own.make(config, run)
  return composite.CompositeLogger([csv, events, *configured], during=leftovers.of_others)
