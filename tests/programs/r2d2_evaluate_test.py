"""`seed-acme evaluate` on a run of R2D2, whose checkpoint also has a replay memory."""

import dataclasses

import pytest

from seed_acme.configs import registry
from seed_acme.learning import training_loop
from seed_acme.programs import cli
from seed_acme.programs import single_process
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

pytestmark = pytest.mark.timeout(240)
_NUM_EPISODES = 64


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  config = registry.load('catch_r2d2')
  config = dataclasses.replace(
    config,
    total_steps=500,
    num_actors=1,
    environments_per_actor=4,
    network=dataclasses.replace(config.network, mlp_sizes=(8,), core_size=8, head_sizes=()),
    agent=dataclasses.replace(config.agent, batch_size=4, replay_min_size=10),
  )
  run = run_directory.create(tmp_path_factory.mktemp('r2d2') / 'run')
  saved_config.save(config, run.config)
  assert single_process.run(config, run) == training_loop.FINISHED
  return run


@pytest.mark.slow
def test_the_saved_memory_is_not_touched(trained, digest, monkeypatch, capsys, one_json):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  newest = checkpoint.newest(trained.checkpoints)
  assert checkpoint.replay_folder(newest) is not None
  before = digest(trained.path)
  code = cli.main(['evaluate', str(trained.path), f'--episodes={_NUM_EPISODES}', '--json'])
  assert code == 0
  record = one_json(capsys.readouterr().out)
  assert record['episodes'] == _NUM_EPISODES
  assert record['checkpoint_updates'] == int(newest.name) > 0
  assert record['length_mean'] == 9
  assert -1 <= record['return_mean'] <= 1
  assert digest(trained.path) == before


@pytest.mark.slow
def test_a_spoilt_memory_does_not_matter(trained):
  wanted = evaluation.evaluate(str(trained.path), _NUM_EPISODES)
  chunks = checkpoint.newest(trained.checkpoints) / 'replay' / 'chunks.tfrecord'
  chunks.write_bytes(b'x')
  assert evaluation.evaluate(str(trained.path), _NUM_EPISODES) == wanted
