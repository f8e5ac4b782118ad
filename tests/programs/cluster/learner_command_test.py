"""The output of `seed-acme node learner` at the end of a run."""

import pytest

from seed_acme.configs import registry
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.cluster import learner_command
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.storage import run_directory


@pytest.mark.parametrize('has_begun', [True, False])
def test_wrong_input_is_followed_by_the_summary_once_training_has_begun(
  tmp_path, capsys, monkeypatch, has_begun
):
  config, run = registry.load('catch_vtrace'), run_directory.create(tmp_path / 'run')
  summary = summary_lib.summarise(config, run, {}, 'failed') | {'lost_updates': 3}
  failure = {'message': 'reward: expected a finite scalar, got nan', 'is_user_error': True}
  outcome = launches.Outcome(2, summary if has_begun else {}, failure)
  monkeypatch.setattr(learner_command, '_learn', lambda *_: outcome)
  cluster = cluster_file.Cluster(
    'cluster.json', ('localhost:1',), (), '0.0.0.0:1', None, ('localhost',), 'token'
  )
  options = learner_command.Options(config, cluster, 0, str(run.path), 0, False, False)
  assert learner_command._run_in(run, options) == 2
  out, err = capsys.readouterr()
  assert err == f'error: {failure["message"]}\n'
  assert ('Failed: 0 steps' in out) == ('Lost: 3 updates' in out) == has_begun
