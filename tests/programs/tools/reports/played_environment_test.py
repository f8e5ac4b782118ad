"""A run is played only in the environments that it was trained in."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import registry as suites
from seed_acme.learning import saved_variables
from seed_acme.programs.building import build
from seed_acme.programs.tools.reports import evaluation
from seed_acme.programs.trial import specification
from seed_acme.progress import counting
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config


class _Screen:
  """A window that shows nothing."""

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass


@pytest.fixture(name='trained_in')
def _trained_in(tmp_path):
  """Returns a function that saves a run of Catch, begun when its environment had other arrays."""

  def save(**arrays):
    config = registry.load('catch_vtrace')
    network = dataclasses.replace(config.network, mlp_sizes=(4,))
    config = dataclasses.replace(config, network=network)
    spec = dataclasses.replace(suites.environment_spec(config.environment), **arrays)
    acting = build.make_acting(config.agent, network, spec)
    variables = saved_variables.acting(acting.agent.acting.make())
    run = run_directory.create(tmp_path / 'run')
    saved_config.save(config, run.config)
    specification.save(run, spec)
    meta = {'counts': counting.Counts()._asdict(), 'resumptions': 0}
    arrays = {name: x.numpy() for name, x in variables.items()}
    checkpoint_writer.save(run.checkpoints, 0, arrays, meta, keep=1)
    return str(run.path)

  return save


@pytest.mark.parametrize(
  ('arrays', 'named'),
  [
    ({'action': specs.DiscreteArray(4)}, r'action: int32\[\], 4 values -> int32\[\], 3 values'),
    (
      {'observation': specs.Array((40,), np.float32)},
      r'observation: float32\[40\] -> float32\[50\]',
    ),
  ],
)
def test_another_environment_is_refused_by_its_difference(trained_in, arrays, named):
  run = trained_in(**arrays)
  with pytest.raises(types.UserError, match=f'this run was started with.*{named}.*Bring that'):
    evaluation.evaluate(run, 2)


def test_a_video_and_a_window_refuse_it_too(trained_in, tmp_path):
  pytest.importorskip('imageio')
  run = trained_in(action=specs.DiscreteArray(4))
  wanted = tmp_path / 'episode.gif'
  for how in ({'video': str(wanted)}, {'screen': _Screen()}):
    with pytest.raises(types.UserError, match='4 values -> .*3 values'):
      evaluation.evaluate(run, 2, **how)
  assert not wanted.exists()


def test_the_same_environment_is_played(trained_in):
  assert evaluation.evaluate(trained_in(), 2)['episodes'] == 2
