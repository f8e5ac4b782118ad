"""How `--launch=auto` chooses, and its measurement."""

import dataclasses
import importlib
import json
import sys

import pytest

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.configs import registry
from seed_acme.envs import checked
from seed_acme.programs.front_end import attempt
from seed_acme.programs.front_end import launch_choice
from seed_acme.programs.front_end import launches
from seed_acme.storage import run_directory

_ENVIRONMENTS = """
import os
import time
from seed_acme.envs import catch

class Sleepy(catch.Catch):
  def step(self, actions):
    time.sleep(0.02)
    return super().step(actions)

def sleepy(seed, num_environments):
  return Sleepy(num_environments, seed)
def broken(seed, num_environments):
  os.abort()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
  (tmp_path / 'naps.py').write_text(_ENVIRONMENTS)
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setenv('PYTHONPATH', str(tmp_path))
  importlib.invalidate_caches()
  yield tmp_path
  sys.modules.pop('naps', None)


def _changed(name='catch_vtrace', **changes):
  config = registry.load(name)
  for path, value in changes.items():
    part, _, field = path.partition('__')
    inner = dataclasses.replace(getattr(config, part), **{field: value}) if field else value
    config = dataclasses.replace(config, **{part: inner})
  return config


def _launch(config, cpu_s, wait_s=0.0, cores=2, has_gpu=False):
  measure = lambda: launch_choice.Stepping(cpu_s, wait_s)
  return launch_choice.decide(config, cores, has_gpu, measure).launch


@pytest.mark.parametrize(
  'cpu_s, wait_s, cores, expected',
  [
    (1e-6, 0.0, 2, 'single_process'),
    (1e-6, 0.0, 64, 'single_process'),  # more cores do not help cheap environments
    (1e-3, 0.0, 2, 'local_mp'),
    (1e-3, 0.0, 1, 'single_process'),  # no core for the work
    (0.0, 1e-3, 1, 'local_mp'),  # waiting needs no core
  ],
)
def test_processes_are_for_environments_that_take_longer_than_messages(
  cpu_s, wait_s, cores, expected
):
  assert _launch(_changed(), cpu_s, wait_s, cores) == expected


def test_the_rows_of_a_message_share_its_cost():
  cpu_s = 40e-6
  config = _changed(environments_per_actor=8)
  assert _launch(config, cpu_s) == 'single_process'
  assert _launch(dataclasses.replace(config, environments_per_actor=256), cpu_s) == 'local_mp'


def test_more_actors_save_more_where_cores_are_free():
  cpu_s = 40e-6
  assert _launch(_changed(num_actors=1), cpu_s, cores=8) == 'single_process'
  assert _launch(_changed(num_actors=7), cpu_s, cores=8) == 'local_mp'
  assert _launch(_changed(num_actors=7), cpu_s, cores=2) == 'single_process'


@pytest.mark.parametrize(
  'changes, has_gpu',
  [
    ({'replay__separate_process': True}, False),
    ({'num_learner_hosts': 2}, False),
    ({'transport__kind': 'grpc'}, False),
    ({'transport__port': 5000}, False),
    ({'actor__python': '/elsewhere/bin/python'}, False),
    ({'learner__inference_devices': '1'}, False),
    ({'network__torso': 'nature_cnn'}, False),
    ({'network__module': 'mine:network'}, False),
    ({}, True),
  ],
)
def test_what_only_processes_can_do_is_not_measured(changes, has_gpu):
  choice = launch_choice.decide(_changed(**changes), 2, has_gpu, measure=None)
  assert choice.launch == 'local_mp'


def test_one_actor_that_waits_for_every_update_is_not_measured():
  config = registry.load('mujoco_ppo_halfcheetah')
  assert launch_choice.decide(config, 64, False, measure=None).launch == 'single_process'
  two = dataclasses.replace(config, num_actors=2)
  assert _launch(two, 1e-3) == 'local_mp'  # they step at the same time


def test_convolutions_on_one_core_have_nothing_to_run_beside():
  assert _launch(_changed(network__torso='nature_cnn'), 1e-6, cores=1) == 'single_process'


def _environment(name):
  return config_lib.EnvironmentConfig(id=f'naps:{name}')


def test_waiting_is_told_from_work(folder):
  cheap = launch_choice.step_environments(_changed())
  assert cheap.cpu_s > 0 and cheap.wait_s < cheap.cpu_s
  sleepy = launch_choice.step_environments(_changed(environment=_environment('sleepy')))
  assert sleepy.wait_s > 2e-3 and sleepy.cpu_s < sleepy.wait_s  # 20 ms for eight


def test_an_error_of_close_costs_no_measurement(monkeypatch):
  def close(self):
    raise RuntimeError('the window is gone')

  monkeypatch.setattr(checked.CheckedEnvironment, 'close', close)
  assert launch_choice.step_environments(_changed()).cpu_s > 0


@pytest.mark.slow
@pytest.mark.parametrize(
  'environment, num_starts, expected, why',
  [
    (config_lib.EnvironmentConfig(id='catch'), 2, 'single_process', 'µs'),
    (_environment('sleepy'), 1, 'local_mp', ' ms'),
    (_environment('broken'), 1, 'local_mp', 'cannot be stepped'),
  ],
)
def test_a_run_is_launched_as_chosen_says_so_and_remembers_it(
  folder, monkeypatch, environment, num_starts, expected, why
):
  monkeypatch.setattr('os.sched_getaffinity', lambda pid: {0, 1})
  monkeypatch.setattr('seed_acme.programs.system.graphics.is_there', lambda: False)
  monkeypatch.setattr(launch_choice, '_TIMEOUT_S', 200.0)  # the machine may be busy
  launched, shown = [], []

  class Attempt:
    is_stopped, stop_signal, cpu_s = False, None, {}

    def __init__(self, run_dir, launch, *others):
      launched.append(launch)

    def request_stop(self, signal_number): ...

    def run(self):
      return 0

  monkeypatch.setattr(attempt, 'Attempt', Attempt)
  run = run_directory.create(folder / 'run')
  given, supervision = _changed(environment=environment), launches.Supervision(show=shown.append)
  for _ in range(num_starts):  # a resumed run chooses again
    layout = layout_lib.Layout.of(given)
    launches.load('auto').start(launches.Run(given, run), layout, supervision)
  assert launched == [(expected,)] * num_starts
  assert [line.partition(',')[0] for line in shown] == [f'Launch: {expected}'] * num_starts
  assert why in shown[0]
  record = json.loads(run.launch.read_text())
  assert record['launch'] == expected and record['reason'] in shown[-1]
  run_directory.create(run.path)  # all files in it are the run's own


@pytest.mark.parametrize(
  'name, has_hint',
  [
    ('catch_vtrace', True),
    ('cartpole_ppo', True),
    ('atari_vtrace_small', True),  # its only actor waits for every update
    ('atari_r2d2_small', False),
  ],
)
def test_the_hint_is_for_those_who_might_gain(monkeypatch, name, has_hint):
  monkeypatch.setattr('os.sched_getaffinity', lambda pid: {0, 1})
  monkeypatch.setattr('seed_acme.programs.system.graphics.is_there', lambda: False)
  assert ('--launch=auto' in launch_choice.hint(registry.load(name))) == has_hint
