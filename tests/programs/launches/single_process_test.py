"""What `--launch=single_process` says of programs that still run at the end, and whose they are."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
  'environment, said',
  [
    ('catch', ''),
    (
      'drill_environments:Leaving',
      'Notice: 1 program (sleep) still ran after the environments were closed, and ended\n',
    ),
  ],
)
def test_programs_of_a_logger_are_not_taken_for_those_of_environments(runs, environment, said):
  run = runs.train(
    '--launch=single_process',
    '--config.total_steps=3000',
    '--config.learner.logger=drill_loggers:WithPrograms',
    f'--config.environment.id={environment}',
  )
  run.expect_finished(3000)
  assert run.stderr == said
  assert (run.run_dir.path / 'logger.txt').read_text() == '[None, None]'  # they ran until then
