"""Event files, read back with TensorBoard's own reader."""

import time

from seed_acme import types
from seed_acme.loggers import tensorboard


def _scalars(folder, tag):
  from tensorboard.backend.event_processing import event_accumulator

  events = event_accumulator.EventAccumulator(str(folder), size_guidance={'scalars': 0})
  events.Reload()
  return [(event.step, event.value) for event in events.Scalars(tag)]


def test_scalars_are_keyed_by_agent_steps(tmp_path):
  logger = tensorboard.TensorBoardLogger(tmp_path)
  logger.write(100, {'loss/policy': 0.5, 'episode/return': 1.0})
  logger.write(2**33, {'loss/policy': 0.25})
  logger.close()
  assert _scalars(tmp_path, 'loss/policy') == [(100, 0.5), (2**33, 0.25)]
  assert _scalars(tmp_path, 'Returns/episode/return') == [(100, 1.0)]


def test_rows_are_readable_before_closing(tmp_path):
  logger = tensorboard.TensorBoardLogger(tmp_path)
  logger.write(1, {'updates': 2.0})
  assert _scalars(tmp_path, 'counts/updates') == [(1, 2.0)]
  logger.close()


def test_a_filmed_episode_is_a_moving_picture_at_its_steps(tmp_path):
  from PIL import Image
  from tensorboard.backend.event_processing import event_accumulator

  preview = tmp_path / 'preview.gif'
  pictures = [Image.new('RGB', (30, 20), (10 * i, 0, 0)) for i in range(3)]
  pictures[0].save(preview, save_all=True, append_images=pictures[1:])
  logger = tensorboard.TensorBoardLogger(tmp_path / 'events')
  logger.write_video(types.Recording(700, tmp_path / 'absent.mp4', preview, 1.0, 2, False))
  logger.close()
  events = event_accumulator.EventAccumulator(str(tmp_path / 'events'))
  events.Reload()
  [image] = events.Images('evaluation/video')
  assert (image.step, image.width, image.height) == (700, 30, 20)
  assert image.encoded_image_string == preview.read_bytes()


def test_the_page_opens_on_returns():
  """TensorBoard sorts tags by code points, except for `/`, `_` and digits, which come first."""
  metrics = [
    'advantage/mean',
    'episode/length',
    'episode/return',
    'episode/return_last_100',
    'episode/training_return',
    'evaluation/length',
    'evaluation/return',
    'loss/total',
    'updates',
    'wall_s',
    'z/returned',
  ]
  by_page = sorted(
    map(tensorboard.tag, metrics),
    key=lambda tag: [(character.isalpha(), character) for character in tag],
  )
  assert by_page[:4] == [
    'Returns/episode/return',
    'Returns/episode/return_last_100',
    'Returns/episode/training_return',
    'Returns/evaluation/return',
  ]
  assert by_page[4:] == [
    'advantage/mean',
    'counts/updates',
    'counts/wall_s',
    'episode/length',
    'evaluation/length',
    'loss/total',
    'z/returned',
  ]


def test_text_is_kept(tmp_path):
  logger = tensorboard.TensorBoardLogger(tmp_path)
  logger.write_text('config', '{\n  "seed": 1\n}')
  logger.close()
  assert any(b'"seed": 1' in path.read_bytes() for path in tmp_path.iterdir())


def test_a_resumed_run_replaces_the_points_beyond_its_checkpoint(tmp_path):
  from tensorboard.backend.event_processing import event_multiplexer

  for points in ([(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)], [(25, -2.5), (35, -3.5)]):
    logger = tensorboard.TensorBoardLogger(tmp_path / 'run')
    logger.write_text('config', 'text')
    for step, value in points:
      logger.write(step, {'updates': value})
    logger.close()
    time.sleep(1.1)  # event files are named, and read, by the second
  multiplexer = event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(tmp_path))
  multiplexer.Reload()
  found = [(event.step, event.value) for event in multiplexer.Scalars('run', 'counts/updates')]
  assert found == [(10, 1.0), (20, 2.0), (25, -2.5), (35, -3.5)]
