"""The picture of a plan."""

import itertools
import pathlib

import pytest

from seed_acme import types
from seed_acme.programs.pictures import drawing
from seed_acme.programs.tools.planning import command as plan_command
from seed_acme.programs.tools.planning import picture
from tests.programs.tools.planning import made_up

_EVIDENCE = pathlib.Path(__file__).parents[4] / 'docs' / 'evidence' / 'plan'

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


@pytest.mark.parametrize(
  'names, changes',
  [
    (
      ['bench_pong_cnn'],
      {
        'actors': 4160,
        'environments_per_actor': 3,
        'device_speed': 200.0,
        'inference_devices': 4,
        'training_devices': 4,
      },
    ),
    (['catch_2x256', 'catch_8x16', 'catch_1x64'], {'actors': 48, 'environments_per_actor': 260}),
  ],
)
def test_no_name_in_the_pictures_of_the_docs_covers_a_mark_or_a_name(monkeypatch, names, changes):
  figures = []
  monkeypatch.setattr(drawing, 'write', lambda figure, out: figures.append(figure))
  records = tuple(str(_EVIDENCE / f'{name}.json') for name in names)
  plan_command.plan(
    plan_command.PlanArguments(bench_files=records, learners=8, out='plan.png', **changes)
  )
  (figure,) = figures
  figure.canvas.draw()
  (panel,) = figure.axes
  boxes = [text.get_window_extent() for text in panel.texts]
  marks = [line.get_window_extent() for line in panel.lines if line.get_marker() == 'o']
  assert len(boxes) == len(marks) == 4
  for box in boxes:
    assert all(panel.bbox.contains(*corner) for corner in box.corners())
    assert not any(box.overlaps(mark) for mark in marks)
  assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
