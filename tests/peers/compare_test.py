"""The script that compares us with other libraries, without those libraries."""

import pathlib
import subprocess
import sys

import pytest

_FOLDER = pathlib.Path(__file__).parents[2] / 'scripts' / 'peers'


@pytest.fixture(name='compare', scope='module')
def _compare():
  """Imports the scripts, which import each other by bare names from one folder."""
  sys.path.insert(0, str(_FOLDER))
  try:
    import compare

    yield compare
  finally:
    sys.path.remove(str(_FOLDER))


def _result(per_cpu_s, per_s=1.0):
  return {'steps_per_cpu_s': per_cpu_s, 'steps_per_s': per_s}


_ROUNDS = [
  {'seed_acme': _result(300.0, 30.0), 'other': _result(100.0, 10.0)},
  {'seed_acme': _result(100.0, 10.0), 'other': _result(100.0, 20.0)},
  {'seed_acme': _result(200.0, 20.0), 'other': _result(400.0, 90.0)},
]


def test_ratios_are_of_the_same_round_and_medians_over_all(compare):
  summary = compare.summary(_ROUNDS, ['seed_acme'])
  assert summary['ratios'] == {'seed_acme': {'other': [0.5, 1.0, 3.0]}}
  assert summary['steps_per_cpu_s'] == {'seed_acme': 200.0, 'other': 100.0}
  assert summary['steps_per_s'] == {'seed_acme': 20.0, 'other': 20.0}


def test_the_text_states_what_was_counted_and_every_ratio(compare):
  text = compare.describe(
    {
      'work': 'catch_mlp',
      'date': '2020-01-31',
      'num_environments': 512,
      'equal': 'the same network',
      'rule': compare.RULE,
      'threads': {'other': 2},
      'versions': {'peers: torch': '9.8.7'},
      **compare.summary(_ROUNDS, ['seed_acme', 'other']),
    }
  )
  assert '512 environments' in text and compare.RULE in text and 'torch 9.8.7' in text
  assert '| contender | steps/s | per CPU-second | seed_acme / this | other / this |' in text
  assert '| seed_acme | 20 | 200 |  | 1.00 (0.33 1.00 2.00) |' in text
  assert '| other | 20 | 100 | 1.00 (0.50 1.00 3.00) |  |' in text


def test_every_contender_of_a_work_has_a_script_and_a_configuration(compare):
  for work in compare.contenders.WORKS.values():
    assert all((_FOLDER / peer.script).is_file() for peer in work.peers)
    for ours in work.ours:
      config = compare.load(ours.config)
      assert config.num_actors * config.environments_per_actor == work.num_environments
    names = [contender.name for contender in (*work.ours, *work.peers)]
    assert len(set(names)) == len(names)


def test_each_library_gets_frames_as_its_convolutions_take_them(compare):
  import acting_boards  # found beside `compare`

  torchrl, ours = acting_boards.make('acting_frames_2', 2, 0), acting_boards.frames(0, 2)
  assert torchrl.reset().observation.shape == (2, 4, 84, 84)
  assert ours.reset().observation.shape == (2, 84, 84, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
  ('arguments', 'expected'),
  [
    (('--work=pacman',), "invalid choice: 'pacman'"),
    (('--work=catch_mlp', '--python=/nowhere/python'), 'scripts/peers/install.sh'),
    (('--work=catch_mlp', '--rounds=0'), '--rounds'),
  ],
)
def test_wrong_input_is_an_error_that_says_what_to_do(arguments, expected):
  script = str(_FOLDER / 'compare.py')
  ended = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
  assert ended.returncode == 2
  assert expected in ended.stderr and 'Traceback' not in ended.stderr


def test_only_lines_about_progress_count(compare):
  parse = compare.peer_process.parse
  assert parse('{"trained_steps": 640}\n') == 640
  for line in ('', 'fps 640', '640', '{"trained_steps": "640"}', '{"steps": 640}'):
    assert parse(line) is None


def _program(tmp_path, text):
  path = tmp_path / 'peer.py'
  path.write_text(text)
  return [sys.executable, str(path)]


def test_a_window_has_the_steps_and_cpu_time_of_all_its_processes(compare, tmp_path):
  """The peer itself waits, and its child computes: 100 steps in 5 ms of CPU time, on a busy machine
  too."""
  child = (
    'import time\n'
    'for i in range(1, 100_000):\n'
    '  while time.process_time() < 0.005 * i: pass\n'
    '  print(flush=True)\n'
  )
  command = _program(
    tmp_path,
    'import json, subprocess, sys\n'
    f'child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)\n'
    'for i, _ in enumerate(child.stdout, 1):\n'
    '  print(json.dumps({"trained_steps": 100 * i}), flush=True)\n',
  )
  result = compare.peer_process.measure(command, seconds=1.0, warmup_seconds=0.1)
  assert result['agent_steps'] % 100 == 0 and result['agent_steps'] >= 100
  # The parent alone uses next to nothing.
  assert 4_000 < result['steps_per_cpu_s'] < 60_000
  assert result['steps_per_cpu_s'] * result['cores_in_use'] == pytest.approx(result['steps_per_s'])


def test_a_peer_that_does_not_train_is_an_error_with_its_last_words(compare, tmp_path):
  from seed_acme import types

  with pytest.raises(types.UserError, match='no display'):
    compare.peer_process.measure(_program(tmp_path, 'raise SystemExit("no display")'), 1.0, 0.0)
