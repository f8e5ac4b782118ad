"""The picture of a plan."""

import pytest

from seed_acme import types
from seed_acme.programs.tools.planning import picture
from tests.programs.tools.planning import made_up

COSTS = made_up.make_costs(
  environment_call=made_up.flat(1e-3),
  inference_call=made_up.flat(1e-4),
  actor_inference_call=made_up.flat(2e-3),
  update=made_up.flat(1e-3),
)


@pytest.mark.slow
@pytest.mark.parametrize(
  'learners, actors, words',
  [(1, 1, ['actors']), (1, 64, ['actors', 'inference', 'training']), (4, 100, ['inference'])],
)
def test_the_bottleneck_is_written_where_it_changes(tmp_path, learners, actors, words):
  out = tmp_path / 'folder' / 'plan.svg'
  picture.draw(COSTS, made_up.make_scale(learners=learners, actors=actors), str(out))
  text = out.read_text()
  for word in words:
    assert f'<!-- {word} -->' in text
  assert '<!-- inference central -->' in text and '<!-- inference at the actors -->' in text


@pytest.mark.slow
def test_a_picture_that_cannot_be_written_is_one_line(tmp_path):
  with pytest.raises(types.UserError, match='cannot write the plot'):
    picture.draw(COSTS, made_up.make_scale(), str(tmp_path / 'plan.nothing'))
