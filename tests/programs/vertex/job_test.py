"""Programs that Vertex AI cannot run."""

import launchpad as lp
import pytest

from seed_acme import types

pytestmark = pytest.mark.slow


def _program(*groups):
  program = lp.Program('test')
  for group, number in groups:
    for _ in range(number):
      program.add_node(lp.PyNode(print), group)
  return program


@pytest.mark.parametrize(
  'groups, expected',
  [
    (
      [('learner', 1), ('a', 1), ('b', 1), ('c', 1), ('d', 1)],
      'has 5 kinds of node (learner, a, b, c, d); Vertex AI takes at most 4',
    ),
    (
      [('learner', 2), ('a', 1), ('b', 1), ('c', 1)],
      'has 5 kinds of node (learner, a, b, c, learners); Vertex AI takes at most 4',
    ),
    ([('actor', 2)], "needs a group 'learner', by whose first node"),
  ],
)
def test_programs_that_vertex_ai_cannot_run(groups, expected):
  from seed_acme.programs.vertex import job as vertex_job  # loads xmanager

  with pytest.raises(types.UserError) as caught:
    vertex_job.check_program(_program(*groups))
  assert expected in str(caught.value)


def test_a_node_has_one_port():
  from seed_acme.programs.vertex import job as vertex_job

  program = _program(('learner', 1))
  [node] = program.get_all_nodes()
  for name in ('one', 'two'):
    node.allocate_address(lp.Address(name))
  with pytest.raises(types.UserError, match="group 'learner' has several addresses"):
    vertex_job.check_program(program)


@pytest.mark.parametrize('number', [2, 3])
def test_several_learner_hosts_have_one_more_port(number):
  from seed_acme.programs.vertex import job as vertex_job

  program = _program(('learner', 2))
  for index, node in enumerate(program.get_all_nodes()):
    for name in range(number):
      node.allocate_address(lp.Address(f'of{index}at{name}'))
  if number == 2:
    vertex_job.check_program(program)
    return
  with pytest.raises(types.UserError, match="group 'learner' has several addresses"):
    vertex_job.check_program(program)
