"""From a configuration to the objects of a run. Module-level functions, so that they pickle
into Launchpad's processes and a test can call each of them.
"""

from __future__ import annotations

import dataclasses
import functools
import json

import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import counting
from seed_acme import learner as learner_lib
from seed_acme import multi_pass_learner
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import training
from seed_acme import types
from seed_acme.agents import base
from seed_acme.agents import registry
from seed_acme.envs import registry as environments
from seed_acme.inference import policy as policy_lib
from seed_acme.inference import server as server_lib
from seed_acme.inference import step_quota
from seed_acme.loggers import composite
from seed_acme.loggers import csv_file
from seed_acme.loggers import tensorboard


@dataclasses.dataclass(frozen=True)
class Acting:
  """What computes actions: the specification, the policy and where its weights come from."""

  spec: types.EnvironmentSpec
  agent: base.Agent
  policy: policy_lib.Policy
  published: policy_lib.PublishedVariables

  def example_unroll(self, config: config_lib.ExperimentConfig) -> types.Unroll:
    """A numpy unroll of the right shapes."""
    return self.policy.example_unroll(config_lib.unroll_rows(config.agent))


def make_acting(config: config_lib.ExperimentConfig) -> Acting:
  """Builds one environment for its specification, and the network that acts."""
  spec = environments.environment_spec(config.environment)
  agent = registry.get(config.agent.agent)
  published = policy_lib.PublishedVariables()
  network = agent.make_network(spec, config.network, config.agent)
  select_actions = functools.partial(_select_actions, agent, spec, config.agent)
  policy = policy_lib.Policy(spec, network, select_actions, agent.num_uniforms(spec), published)
  return Acting(spec, agent, policy, published)


def _select_actions(
  agent: base.Agent,
  spec: types.EnvironmentSpec,
  config: config_lib.AgentConfig,
  prediction: types.Nest,
  exploration: types.Exploration,
) -> types.AgentOutput:
  return agent.select_actions(spec, prediction, exploration, config)


def make_learner(config: config_lib.ExperimentConfig, acting: Acting) -> learner_lib.Learner:
  """The learner with a network of its own, initialised from the seed."""
  tf.random.set_seed(config.seed)
  network = acting.agent.make_network(acting.spec, config.network, config.agent)
  loss = functools.partial(_loss, acting.agent, config.agent)
  if acting.agent.passes is not None:
    return multi_pass_learner.MultiPassLearner(
      network,
      loss,
      config.agent,
      config.total_steps,
      acting.agent.passes(config.agent),
      config.seed,
      config.learner.xla,
    )
  after_update = acting.agent.after_update and functools.partial(
    _after_update, acting.agent, config.agent
  )
  return learner_lib.Learner(network, loss, config.agent, config.total_steps, after_update)


def _loss(
  agent: base.Agent,
  config: config_lib.AgentConfig,
  network: core.RecurrentNetwork,
  sample: types.Sample,
) -> types.LossOutput:
  return agent.loss(network, sample, config)


def _after_update(
  agent: base.Agent,
  config: config_lib.AgentConfig,
  network: core.RecurrentNetwork,
  num_updates: tf.Tensor,
) -> None:
  assert agent.after_update is not None
  agent.after_update(network, num_updates, config)


def make_server(
  config: config_lib.ExperimentConfig,
  acting: Acting,
  sink: core.UnrollSink,
  counters: counting.Counters,
) -> server_lib.InferenceServer:
  """The inference server, handing finished unrolls to `sink`."""
  quota = None
  if config.inference.strictly_on_policy:
    quota = step_quota.StepQuota(
      config_lib.num_training_environments(config), config_lib.unrolls_per_update(config)
    )
  return server_lib.InferenceServer(
    spec=acting.spec,
    policy=acting.policy,
    num_training=config_lib.num_training_environments(config),
    num_environments=config_lib.num_environments(config),
    unroll_length=config.agent.unroll_length,
    overlap=config.agent.overlap,
    batch_size=config_lib.inference_batch_size(config),
    seed=config.seed,
    sink=sink,
    counters=counters,
    quota=quota,
  )


def make_training_loop(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory,
  acting: Acting,
  server: server_lib.InferenceServer,
  counters: counting.Counters,
  memory: core.ReplayMemory | None,
) -> training.TrainingLoop:
  """The loop with its learner and its logs."""
  csv = csv_file.CsvLogger(run.metrics)
  events = tensorboard.TensorBoardLogger(run.tensorboard)
  events.write_text('config', json.dumps(saved_config.to_json(config), indent=2))
  logger = composite.CompositeLogger([csv, events])
  return training.TrainingLoop(
    config,
    run,
    learner=make_learner(config, acting),
    server=server,
    published=acting.published,
    counters=counters,
    csv=csv,
    logger=logger,
    memory=memory,
  )
