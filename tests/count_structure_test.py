"""scripts/count_structure.py: what it counts, and what the code keeps to."""

import json

import pytest

from tests import sources


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('count_structure')


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
  assert {'agents/on_policy/config.py', 'agents/r2d2/config.py', 'agents/sac/config.py'} <= set(
    files
  )
  assert all(name.startswith('agents/') and name.endswith('config.py') for name in files)


def test_few_places_decide_by_the_number_of_hosts_or_shards(script):
  assert len(script.conditions_on_hosts_and_shards()) <= 13
