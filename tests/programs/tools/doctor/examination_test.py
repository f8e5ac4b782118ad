"""The doctor's findings, on this machine and on simulated faults."""

import json

import pytest

from seed_acme.programs.system import graphics
from seed_acme.programs.tools.doctor import examination as doctor


def test_a_good_machine_has_nothing_wrong_and_every_subject_is_there(monkeypatch):
  # The tests import the heavy libraries themselves; here only their place in the report matters.
  monkeypatch.setattr(
    doctor, 'check_import', lambda name, code: [doctor.Check(f'import {name}', 'ok', '')]
  )
  checks = doctor.run()
  states = {check.name: check.state for check in checks}
  for name in (
    'platform',
    'python',
    'processor',
    'oneDNN',
    'memory',
    '/dev/shm',
    'ports',
    'gym',
    'gymnasium',
    'import launchpad',
    'import courier',
    'import reverb',
    'import tensorflow',
    'import sonnet',
  ):
    assert name in states
  for name in ('platform', 'python', 'ports'):
    assert states[name] == 'ok'
  assert all(check.fix for check in checks if check.state != 'ok')


@pytest.mark.parametrize(
  'code, state, detail',
  [
    ('print("noise"); print("fine")', 'ok', 'fine'),
    ('import no_such_module_at_all', 'wrong', 'no_such_module_at_all'),
    ('import os; os.abort()', 'wrong', 'killed by signal 6'),
    ('raise SystemExit(3)', 'wrong', 'no message'),
  ],
)
def test_an_import_that_fails_is_a_finding(code, state, detail):
  (check,) = doctor.check_import('thing', code)
  assert check.name == 'import thing' and check.state == state and detail in check.detail
  assert bool(check.fix) == (state == 'wrong')


def test_an_import_that_hangs_is_a_finding():
  (check,) = doctor.check_import('thing', 'import time; time.sleep(600)', timeout_s=0.5)
  assert check.state == 'wrong' and 'no answer' in check.detail


def _proxies(monkeypatch):
  for name in ('http_proxy', 'https_proxy'):
    monkeypatch.setenv(name, 'http://127.0.0.1:9')
  for name in ('no_grpc_proxy', 'no_proxy', 'NO_PROXY'):
    monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_reverb_is_called_past_the_proxy_of_the_machine(monkeypatch):
  _proxies(monkeypatch)
  (check,) = doctor.check_import('reverb', doctor.IMPORTS['reverb'])
  assert check.state == 'ok' and 'localhost answers' in check.detail


@pytest.mark.slow
def test_a_proxy_that_takes_calls_to_this_machine_is_a_finding(monkeypatch, tmp_path):
  _proxies(monkeypatch)
  (tmp_path / 'seed_acme.py').touch()  # without the protection against a proxy
  monkeypatch.chdir(tmp_path)
  code = doctor.IMPORTS['reverb'].replace('timeout=20', 'timeout=1')
  (check,) = doctor.check_import('reverb', code)
  assert check.state == 'wrong' and 'https_proxy, http_proxy is set' in check.detail
  assert 'no_grpc_proxy' in check.fix


def test_tensorflow_also_reports_the_devices():
  first, second = doctor.check_import('tensorflow', 'print("[[\\"GPU:0\\"], true, \\"\\"]")')
  assert first.state == 'ok' and second.state == 'ok'
  assert second.detail.startswith('GPU:0; kernels are kept in ')


def test_a_gpu_that_cannot_train_is_wrong():
  _, check = doctor.check_import('tensorflow', 'print("[[\\"GPU:0\\"], true, \\"no kernel\\"]")')
  assert check.state == 'wrong' and check.detail == 'no kernel' and 'nvidia-smi' in check.fix


@pytest.mark.parametrize(
  'is_there, state, said', [(False, 'ok', 'CPU only'), (True, 'warning', 'built without CUDA')]
)
def test_a_gpu_that_tensorflow_does_not_see_is_a_warning(monkeypatch, is_there, state, said):
  monkeypatch.setattr(graphics, 'is_there', lambda: is_there)
  _, check = doctor.check_import('tensorflow', 'print("[[], false, \\"\\"]")')
  assert check.state == state and said in check.detail
  assert bool(check.fix) == is_there


def test_onednn_switched_off_is_a_warning(monkeypatch):
  monkeypatch.setenv('TF_ENABLE_ONEDNN_OPTS', '0')
  monkeypatch.setattr(doctor, 'check_import', lambda name, code: [])
  (check,) = [check for check in doctor.run() if check.name == 'oneDNN']
  assert check.state == 'warning'


def test_text_is_aligned_and_gives_the_fixes():
  text = doctor.to_text(
    [doctor.Check('a', 'ok', 'fine'), doctor.Check('longer', 'wrong', 'bad', 'mend it')]
  )
  assert text.splitlines() == [
    'ok       a       fine',
    'wrong    longer  bad',
    '                 -> mend it',
    '1 ok, 0 warning, 1 wrong',
  ]


def test_json_and_the_verdict():
  good, odd, bad = (doctor.Check('x', state, '') for state in ('ok', 'warning', 'wrong'))
  assert not doctor.is_wrong([good, odd]) and doctor.is_wrong([good, bad])
  report = json.loads(json.dumps(doctor.to_json([odd, bad])))
  assert report['wrong'] is True
  assert report['checks'][0] == {'name': 'x', 'state': 'warning', 'detail': '', 'fix': ''}


@pytest.mark.slow
def test_a_call_of_reverb_leaves_nothing_behind(tmp_path, monkeypatch):
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  (check,) = doctor.check_import('reverb', doctor.IMPORTS['reverb'])
  assert check.state == 'ok', check
  assert list(tmp_path.iterdir()) == []


def test_a_module_of_another_distribution_is_there(monkeypatch):
  """cv2 comes with opencv-python or with opencv-python-headless."""
  version = doctor.metadata.version

  def without_opencv(name):
    if name == 'opencv-python':
      raise doctor.metadata.PackageNotFoundError(name)
    return version(name)

  monkeypatch.setattr(
    doctor, 'check_import', lambda name, code: [doctor.Check(f'import {name}', 'ok', '')]
  )
  monkeypatch.setattr(doctor.metadata, 'version', without_opencv)
  [found] = [check for check in doctor.run() if check.name == 'opencv-python']
  assert found.state == 'ok' and 'cv2' in found.detail
