"""The objects that a whole configuration is built into, as in a run."""

from seed_acme.envs import registry as suites
from seed_acme.learning import peers as peers_lib
from seed_acme.programs.building import build


def make_acting(config, devices=None):
  """Builds the acting side for environments that are made in this process."""
  spec = suites.environment_spec(config.environment)
  return build.make_acting(config.agent, config.network, spec, devices)


def make_learner(config, acting, peers=peers_lib.ALONE):
  """Builds the learner with the seed and the budget of the configuration."""
  return build.make_learner(acting, config.seed, config.total_steps, config.learner.xla, peers)
