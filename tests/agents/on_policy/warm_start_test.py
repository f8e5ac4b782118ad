"""Starts from a checkpoint of other settings: refused if the network that acted had more parts."""

import numpy as np
import pytest

from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.learning import saved_variables

_AVERAGE = on_policy_config.NormalizationConfig('average')
_PREVIOUS = [f'acting/on_policy/values/previous_{name}:0' for name in ('mean', 'std')]


@pytest.fixture
def make(make_config, make_network, make_learner):
  """`make(settings of the network, **fields)`: a learner of continuous actions."""

  def make(settings=None, **fields):
    config = make_config(**fields)
    network = make_network(config, 'continuous', **{'core_size': 5, **(settings or {})})
    return make_learner(network, config)

  return make


def _saved(learner):
  return {name: np.array(x) for name, x in learner.save().items()}


@pytest.mark.parametrize(
  'fields, said',
  [
    ({'observations': _AVERAGE}, 'observations/statistics_0/mean:0'),
    ({'values': _AVERAGE}, 'values/statistics/mean:0'),
    ({'state_independent_std': True}, 'free_std:0'),
    ({'settings': {'core': 'lstm'}}, 'lstm'),
  ],
)
def test_what_acted_and_would_be_left_out_is_refused_by_name(fields, said, make):
  donor, learner = make(**fields), make()
  before = _saved(learner)
  said = f'the checkpoint has acting/.*{said}.*use the configuration it was made with'
  with pytest.raises(types.UserError, match=said):
    learner.warm_start(_saved(donor))
  for name, x in _saved(learner).items():
    np.testing.assert_array_equal(x, before[name])


def test_a_policy_that_would_play_without_its_statistics_is_refused(
  make, make_config, make_network
):
  config = make_config()
  variables = saved_variables.acting(make_network(config, 'continuous').acting)
  acting = {name: x for name, x in make(observations=_AVERAGE).save().items() if 'acting/' in name}
  with pytest.raises(types.UserError, match='the checkpoint has acting/on_policy/observations/'):
    saved_variables.assign(variables, acting)


def test_statistics_for_value_clipping_may_begin_anew_or_be_left_out(make):
  clipped, plain = (make(values=_AVERAGE, value_clip=clip) for clip in (0.2, 0.0))
  assert sorted(set(clipped.save()) - set(plain.save())) == _PREVIOUS
  assert sorted(clipped.warm_start(_saved(plain))) == _PREVIOUS
  assert plain.warm_start(_saved(clipped)) == []
  with pytest.raises(types.UserError, match='the checkpoint has no acting/on_policy/values/prev'):
    clipped.restore(_saved(plain), 1)  # a run that resumes is exact
  clipped.restore(_saved(clipped), 1)
