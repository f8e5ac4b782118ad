"""scripts/count_structure.py: its counts, and the limits that the code keeps."""

import json

import pytest

from tests import sources


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('count_structure')


@pytest.mark.slow
def test_few_files_are_read_to_follow_a_vtrace_loss(script):
  files = script.vtrace_loss_files()
  assert {
    'agents/on_policy/vtrace.py',
    'seed_acme/ops/vtrace.py',
    'seed_acme/networks/torsos.py',
  } <= set(files)
  assert len(files) <= 12


def test_what_makes_the_on_policy_agent_alone_takes_its_configuration(script):
  takers = script.on_policy_config_takers()
  assert 'agent.py:make_agent' in takers
  assert {name.partition(':')[0] for name in takers} == {'agent.py', 'network.py', 'resolve.py'}


@pytest.mark.parametrize(
  'source, number',
  [
    ('"""Doc."""\n\nx = 1  # one\n# two\n', 1),
    ('def f(\n  x,\n):\n  """Doc\n\n  of two lines."""\n\n  return x\n', 4),
    ('x = """a\n\nb"""\n', 3),
    ('class A:\n  """Doc."""\n', 1),
  ],
)
def test_code_lines_have_no_docstrings_comments_or_blanks(script, source, number):
  assert script.code_lines(source) == number


def test_chosen_counts_are_printed(script, monkeypatch, capsys):
  monkeypatch.setattr(script, 'COUNTS', {'a': lambda: 3, 'b': lambda: ['x', 'y']})
  script.main(['--json'])
  assert json.loads(capsys.readouterr().out) == {'a': 3, 'b': ['x', 'y']}
  script.main(['b'])
  assert capsys.readouterr().out == 'b: 2\n  x\n  y\n'
  with pytest.raises(SystemExit):
    script.main(['c'])


def test_below_the_node_nobody_knows_a_whole_experiment_but_the_checks_of_agents(script):
  files = script.experiment_config_below_the_node()
  assert {'agents/on_policy/config.py', 'agents/sac/config.py'} <= set(files)
  assert all(name.startswith('agents/') and name.endswith('config.py') for name in files)


@pytest.mark.slow
def test_few_places_decide_by_the_number_of_hosts_or_shards(script):
  assert len(script.conditions_on_hosts_and_shards()) <= 12


def test_the_configuration_is_split_once(script):
  takers = script.experiment_config_takers()
  assert 'programs/building/sections.py:split' in takers
  assert len(takers) <= 20


@pytest.mark.slow
def test_what_belongs_to_one_node_travels_as_one(script):
  most = script.travelling_values()
  assert most and all(len(line.partition(': ')[2].split()) <= 3 for line in most)
  takers = script.node_takers()
  assert 'programs/graph/entries.py:run' in takers
  assert len(takers) <= 5


def test_only_what_speaks_to_launchpad_asks_it_for_its_launch(script):
  files = {line.partition(':')[0] for line in script.questions_of_the_launch()}
  assert files == {'programs/graph/program_graph.py', 'programs/nodes/host.py'}


@pytest.mark.slow
def test_signals_are_handled_in_one_place(script):
  """Handlers that environments have set are removed."""
  files = {line.partition(':')[0] for line in script.files_that_set_signal_handlers()}
  assert files == {'programs/system/signals.py', 'seed_acme/envs/process_state.py'}


@pytest.mark.parametrize(
  'source, number',
  [
    ('import signal\nsignal.signal(signal.SIGTERM, f)', 1),
    ('stack.callback(signal.signal, number, before)', 1),
    ('loop.add_signal_handler(2, f)', 1),
    ('os.kill(pid, signal.SIGTERM)  # signal.signal(', 0),
    ('process.send_signal(signal.SIGTERM)', 0),
  ],
)
def test_who_sends_a_signal_handles_none(script, source, number):
  assert script.num_signal_handlers(source) == number
