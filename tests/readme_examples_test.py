"""Commands and code in README.md and docs/ can be parsed and run (see also readme_test.py)."""

import dataclasses
import importlib
import itertools
import json
import pathlib
import re
import shlex
import sys

import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.configs import registry as configs
from seed_acme.envs import registry as environments
from seed_acme.envs.interpreters import remote
from seed_acme.loggers import composite
from seed_acme.loggers import own
from seed_acme.networks import build as networks
from seed_acme.programs import cli
from seed_acme.programs.cluster import cluster_file
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.pictures import plot as plot_lib
from seed_acme.programs.tools.benchmark import bench
from seed_acme.programs.tools.benchmark import side_by_side
from seed_acme.programs.tools.doctor import examination
from seed_acme.programs.tools.export import saved_model
from seed_acme.programs.tools.inspection import address as inspect_address
from seed_acme.programs.tools.packing import packing
from seed_acme.programs.tools.planning import costs as planning_costs
from seed_acme.programs.tools.sweep import schedule as sweep_schedule
from seed_acme.programs.trial import door
from seed_acme.storage import opening
from seed_acme.storage import packed_run
from seed_acme.storage import run_directory
from tests import built
from tests import pages


def _commands():
  """Returns the arguments of every line of every ```bash block, without duplicates."""
  return {
    tuple(shlex.split(line, comments=True))
    for block in pages.blocks('bash')
    for line in block.text.replace('\\\n', ' ').splitlines()
    if shlex.split(line, comments=True)
  }


@pytest.fixture(name='shown_files')
def _shown_files(tmp_path, monkeypatch):
  """Makes a working folder with the files that the pages show, as a reader would."""
  for name, text in pages.files().items():
    (tmp_path / name).write_text(text)
  (tmp_path / 'runs' / 'catch_vtrace').mkdir(parents=True)
  (tmp_path / 'runs' / 'latest').symlink_to('catch_vtrace')  # of the commands before
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, 'path', [*sys.path, str(tmp_path)])
  importlib.invalidate_caches()
  yield tmp_path
  for name in pages.files():
    sys.modules.pop(pathlib.Path(name).stem, None)


_TRIED = ('reverb', 'tensorflow')  # by the doctor's own tests


class _Parsed(Exception):
  """The command line has been parsed, and the work would begin."""


def _check_config(config):
  config_validation.validate(config)
  suite = environments.find(config.environment.id)
  assert suite
  # Its packages may be installed by a separate command.
  if not (config.actor.python or suite.missing_packages()):
    environments.check(config.environment)
  if ':' in config.network.torso:
    dotted_path.load_object(config.network.torso, 'network.torso')


def _check_seed_acme(arguments, monkeypatch):
  """Runs the real command line up to where the work begins; `list` and most of `doctor` run."""

  def begin(config, *args, **kwargs):
    for one in config if isinstance(config, list) else [config]:  # a list is that of a sweep
      if isinstance(one, config_lib.ExperimentConfig):
        _check_config(one)
    raise _Parsed

  for module, name in (
    (lifecycle, 'prepare'),
    (door, 'check'),
    (bench, 'bench'),
    (side_by_side, 'measure'),
    (opening, 'open_run'),
    (plot_lib, 'plot'),
    (remote, 'known_environments'),
    (saved_model, 'export'),
    (packing, 'pack'),
    (packed_run, 'unpack'),
    (cluster_file, 'load'),
    (sweep_schedule, 'Scheduler'),
    (planning_costs, 'read'),
    (inspect_address, 'of_run'),
    (inspect_address, 'check_answers'),
  ):
    monkeypatch.setattr(module, name, begin)
  imports = {name: code for name, code in examination.IMPORTS.items() if name not in _TRIED}
  monkeypatch.setattr(examination, 'IMPORTS', imports)
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)
  monkeypatch.setenv('SDL_VIDEODRIVER', 'dummy')  # a display that always exists
  try:
    # A redirection in the shell is no argument.
    code = cli.main(list(itertools.takewhile(lambda argument: argument != '>', arguments)))
  except _Parsed:
    code = 0
  assert code == 0, f'seed-acme {" ".join(arguments)} ends with {code}'


def _check_make(arguments, monkeypatch):
  del monkeypatch
  makefile = (pages.ROOT / 'Makefile').read_text()
  targets = re.search(r'^\.PHONY: (.*)$', makefile, re.MULTILINE)[1].split()
  variables = [*re.findall(r'^(\w+) \?=', makefile, re.MULTILINE), 'PYTHON']
  for argument in arguments:
    name, equals, _ = argument.partition('=')
    assert name in (variables if equals else targets), f'make knows no {name!r}'


def _check_tensorboard(arguments, monkeypatch):
  del monkeypatch
  assert all(argument.startswith('--logdir=') for argument in arguments), arguments


def _check_source(arguments, monkeypatch):
  del monkeypatch
  assert arguments == ('.venv/bin/activate',), arguments


def _check_script(arguments, monkeypatch):
  """Checks that the script exists and knows the options; it has tests of its own."""
  del monkeypatch
  script = pages.ROOT / arguments[0]
  assert script.is_file(), f'there is no {arguments[0]}'
  text = script.read_text()
  for argument in arguments[1:]:
    assert not argument.startswith('--') or f"'{argument.partition('=')[0]}'" in text, argument


_CHECKS = {
  'seed-acme': _check_seed_acme,
  'make': _check_make,
  'tensorboard': _check_tensorboard,
  'source': _check_source,
  'python': _check_script,
}


def _check_command(words, monkeypatch):
  assert words[0] in _CHECKS, f'nothing here can check {words[0]!r}: add a check or use ```text'
  _CHECKS[words[0]](words[1:], monkeypatch)


def _of_the_quick_tests_or_not(command):
  marks = pytest.mark.slow if command == ('seed-acme', 'doctor') else ()  # it really runs
  return pytest.param(command, marks=marks, id=' '.join(command)[:60])


@pytest.mark.slow
@pytest.mark.parametrize('command', map(_of_the_quick_tests_or_not, sorted(_commands())))
def test_command(command, monkeypatch, shown_files):
  _check_command(command, monkeypatch)


@pytest.mark.parametrize(
  'line',
  [
    'make trian',
    'make CONFIGS=x',
    'seed-acme trian',
    'seed-acme train --config=catch',
    'seed-acme train --config.agent.discout=1',
    'seed-acme train --config.num_actors=many',
    'seed-acme train --config.num_actors=0',
    'seed-acme evaluate --episodes=1',
    'seed-acme plot',
    'seed-acme train --config=gym_vtrace --config.environment.id=nowhere:make',
    'seed-acme train --config.network.torso=gated:Nothing',
    'seed-acme inspect',
    'seed-acme inspect --server=localhost',
    'seed-acme inspect --run_dir=runs/latest --save=x',
    'tensorboard runs',
    'python x.py',
  ],
)
def test_a_wrong_command_is_found(line, monkeypatch, shown_files):
  with pytest.raises((AssertionError, types.UserError)):
    _check_command(tuple(line.split()), monkeypatch)


def test_the_custom_torso_is_built_and_runs(shown_files):
  spec = environments.environment_spec(config_lib.EnvironmentConfig('catch'))
  config = config_lib.NetworkConfig(torso='gated:GatedMLP', core='lstm', core_size=8)
  network = networks.make_actor_critic(config, spec, num_policy_params=3)
  prediction, _ = network(networks.zero_inputs(spec, 5), network.initial_state(5))
  assert prediction.policy_params.shape == (5, 3)
  assert {'hidden', 'gate', 'output'} <= {v.name.split('/')[-2] for v in network.variables}
  assert len(pages.files()['gated.py'].splitlines()) <= 22


def test_the_custom_logger_gets_rows_and_is_closed_once(shown_files):
  config = dataclasses.replace(
    configs.load('catch_vtrace'), learner=config_lib.LearnerConfig(logger='json_lines:JsonLines')
  )
  own.check(config)
  run = run_directory.RunDirectory(shown_files / 'a_run')
  path = shown_files / 'catch_vtrace_a_run.jsonl'
  assert not path.exists()
  logger = composite.CompositeLogger(own.make(config, run))
  logger.write(7, {'loss/total': 0.5})
  logger.close()
  logger.close()
  assert json.loads(path.read_text()) == {'agent_steps': 7, 'loss/total': 0.5}


@pytest.mark.parametrize(
  'module, name',
  [('my_environment_test', 'TestMyEnvironment'), ('thermostat_test', 'TestThermostat')],
)
def test_a_custom_environment_keeps_the_contract(shown_files, module, name):
  test_class = getattr(importlib.import_module(module), name)
  checks = [name for name in dir(test_class) if name.startswith('test_')]
  assert len(checks) > 5
  for name in checks:
    getattr(test_class(), name)()


def test_the_custom_environment_takes_the_setting_shown(shown_files):
  config = config_lib.EnvironmentConfig('corridor:make', {'length': 8})
  environment = environments.make(config, num_environments=2, seed=1)
  environment.reset()
  for _ in range(8):
    timestep = environment.step(np.ones(2, np.int32))
  environment.close()
  np.testing.assert_array_equal(timestep.step_type, types.LAST)
  np.testing.assert_array_equal(timestep.reward, 1)
  np.testing.assert_array_equal(timestep.discount, 0)


@pytest.mark.slow
def test_the_custom_agent_learns_from_a_sample(shown_files):
  dqn = importlib.import_module('dqn')
  assert len(pages.files()['dqn.py'].splitlines()) <= 80
  config = dataclasses.replace(dqn.experiment(), agent=dqn.DQNConfig(unroll_length=4, batch_size=2))
  config_validation.validate(config)
  acting = built.make_acting(config)
  learner = built.make_learner(config, acting)
  before = learner.variables().values
  update = learner.step(_sample(acting.example_unroll(), batch_size=2), agent_steps=0)
  assert update.trained_steps == 2 * 3  # the transition out of LAST does not count
  assert np.isfinite(list(update.metrics.values())).all()
  for old, new in zip(before, learner.variables().values):
    assert not np.array_equal(old, new), 'a variable got no gradient'


def _sample(unroll, batch_size):
  """Returns FIRST MID LAST FIRST MID, random observations, a reward at the end of the episode."""
  random = np.random.default_rng(1)
  time_major = lambda x: tf.constant(np.repeat(x[:, None], batch_size, axis=1))
  step_type = np.array([types.FIRST, types.MID, types.LAST, types.FIRST, types.MID], np.uint8)
  reward = np.array([0, 0, 1, 0, 0], np.float32)
  observation = random.random(unroll.inputs.observation.shape, np.float32)
  inputs = unroll.inputs._replace(step_type=step_type, reward=reward, observation=observation)
  initial_state, inputs, outputs, version = tree.map_structure(
    time_major, unroll._replace(initial_state=(), inputs=inputs)
  )
  return types.Sample(
    types.Unroll(initial_state, inputs, outputs, version),
    tf.zeros([batch_size], tf.uint64),
    tf.zeros([batch_size], tf.float64),
  )
