"""Several learner hosts with `--launch=vertex_ai`: the replicas themselves."""

import json

import pytest

from tests.programs.vertex import containers
from tests.programs.vertex import launching

pytestmark = pytest.mark.slow

_URL = 'gs://bucket/vertex/learners'
_STEPS = 20_000  # so many that each host can be lost before the end


@pytest.fixture(scope='module')
def dry_run(tmp_path_factory):
  """Makes a dry run of a small run on Catch with evaluation."""
  return launching.dry_run(
    tmp_path_factory.mktemp('dry'),
    f'--run_dir={_URL}',
    '--config.num_learner_hosts=2',
    '--config.num_actors=2',
    f'--config.total_steps={_STEPS}',
    '--config.checkpoint.period_s=1',
  )


@pytest.fixture
def replicas(dry_run, storage, tmp_path):
  started = containers.Replicas(dry_run, storage, tmp_path)
  yield started
  started.kill()


@pytest.mark.scale
@pytest.mark.processes
@pytest.mark.timeout(1200)
def test_the_hosts_meet_again_after_each_loss_and_train_to_the_end(replicas, storage, until):
  def status():
    path = storage.path(f'{_URL}/status.json')
    return json.loads(path.read_text()) if path.exists() else {}

  def wait_for_updates(resumptions):
    # At least as many: a host that comes back late on a busy machine costs the others one more.
    is_training = lambda now: (
      now.get('resumptions', -1) >= resumptions and now['status'] == 'running'
    )
    chief = replicas.processes['learner', 0]
    try:
      until(lambda: is_training(status()) or chief.poll() is not None, 'updates', launching.HANG_S)
    except AssertionError as error:
      raise AssertionError(f'{error}: {status()}\n{replicas.logs()}') from error
    assert chief.poll() is None, replicas.logs()

  replicas.start_all()
  wait_for_updates(0)
  lost = replicas.processes['learners', 0]
  lost.kill()
  lost.wait()
  replicas.start('workerpool1', 'learners', 0)  # Vertex AI restarts a container in its place
  wait_for_updates(1)
  assert replicas.terminate('learner', 0) == 143, replicas.logs()
  replicas.start('workerpool0', 'learner', 0)
  assert set(replicas.wait().values()) == {0}, replicas.logs()
  final = status()
  assert final['status'] == 'finished' and final['agent_steps'] >= _STEPS, replicas.logs()
  assert final['resumptions'] >= 2
  assert all(actor['rows'] for actor in final['actors'])
  for key in (('learner', 0), ('learners', 0)):
    assert 'Starting again, to meet the other learner hosts' in replicas.log(*key)
