"""scripts/gpu_check.py on a machine without a GPU: its records of steps that fail or hang."""

import json
import os
import subprocess
import sys

import pytest

from tests import sources


@pytest.fixture(name='script', scope='module')
def _script():
  return sources.script('gpu_check')


@pytest.mark.parametrize(
  'code, is_json, exit_code',
  [
    ('print("noise"); print("[1]")', True, 0),
    ('print("no json")', True, 1),
    ('print("x"); raise SystemExit(4)', False, 4),
    ('import time; print("x", flush=True); time.sleep(60)', False, None),
  ],
)
def test_a_step_keeps_what_it_has_shown(script, code, is_json, exit_code):
  step = script.Step('step', (sys.executable, '-c', code), 5, is_json)
  record = script.run(step)
  assert record['exit_code'] == exit_code and record['printed'].strip()
  assert record.get('result') == ([1] if exit_code == 0 else None)


@pytest.mark.parametrize('fails', [False, True])
def test_all_steps_are_run_and_each_is_written_at_once(script, monkeypatch, tmp_path, fails):
  out = tmp_path / 'result.json'

  def run(step):
    known = json.loads(out.read_text())['steps'] if out.exists() else {}
    assert step.name not in known
    return {'exit_code': int(fails and step.name == 'tests'), 'seconds': 1, 'result': ['a card']}

  monkeypatch.setattr(script, 'run', run)
  assert script.main(str(out)) == fails
  names = [step.name for step in script.steps('folder', 2)]
  assert list(json.loads(out.read_text())['steps']) == ['gpus', *names]


def test_all_steps_together_take_no_more_than_ten_minutes(script, monkeypatch, tmp_path):
  now = [0.0]

  def run(step):
    now[0] += step.limit_s
    return {'exit_code': None, 'seconds': step.limit_s, 'result': ['a card']}

  monkeypatch.setattr(script.time, 'monotonic', lambda: now[0])
  monkeypatch.setattr(script, 'run', run)
  assert script.main(str(tmp_path / 'result.json'))
  assert now[0] <= 600


def test_a_step_may_set_what_its_command_finds_around_it(script):
  code = 'import os, json; print(json.dumps(os.environ["CUDA_VISIBLE_DEVICES"]))'
  step = script.Step('step', (sys.executable, '-c', code), 5, True, {'CUDA_VISIBLE_DEVICES': '-1'})
  assert script.run(step)['result'] == '-1'


@pytest.mark.slow
def test_without_a_gpu_it_says_so_and_ends_with_3(tmp_path):
  out = tmp_path / 'result.json'
  done = subprocess.run(
    ['bash', sources.ROOT / 'scripts' / 'gpu_check.sh', out],
    env={**os.environ, 'PYTHON': sys.executable, 'CUDA_VISIBLE_DEVICES': '-1'},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 3, done.stderr
  assert (
    'sees no GPU' in done.stdout and json.loads(out.read_text())['steps']['gpus']['result'] == []
  )
