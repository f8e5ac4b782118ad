"""`seed-acme export`: a SavedModel that acts as `load_policy` does, with TensorFlow alone."""

import dataclasses
import json
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tree

import seed_acme
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import registry as environments
from seed_acme.learning import saved_variables
from seed_acme.programs import cli
from seed_acme.progress import counting
from seed_acme.storage import checkpoint_writer
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config
from tests import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
_ROWS, _STEPS = 3, 24
_SMALL = {'mlp_sizes': (8,)}
# name: configuration, changes of its network and of its agent
_POLICIES = {
  'continuous': ('pendulum_ppo', _SMALL, {}),
  'dict_observation': ('bitflip_sac_her', _SMALL, {}),
  # with an LSTM that sees the previous action and reward
  'r2d2': ('catch_r2d2', {**_SMALL, 'core_size': 8, 'head_sizes': ()}, {'evaluation_epsilon': 0.0}),
}
# A program for another process, which replays recorded inputs and compares actions.
_ELSEWHERE = """
import importlib.abc, pickle, sys
class Refuse(importlib.abc.MetaPathFinder):
  def find_spec(self, name, path, target=None):
    if name.split('.')[0] in ('seed_acme', 'sonnet', 'tree', 'dm_env', 'reverb', 'launchpad'):
      raise ImportError(name + ' is not to be there')
sys.meta_path.insert(0, Refuse())
import numpy as np
import tensorflow as tf
for folder, steps in pickle.load(open(sys.argv[1], 'rb')):
  policy = tf.saved_model.load(folder)
  state = policy.initial_state(len(steps[0]['is_first']))
  for step in steps:
    action, state = policy.step(step['observation'], step['reward'], step['discount'],
                                step['is_first'], state)
    tf.nest.assert_same_structure(action, step['action'])
    for got, wanted in zip(tf.nest.flatten(action), tf.nest.flatten(step['action'])):
      assert got.dtype.as_numpy_dtype == wanted.dtype, (got.dtype, wanted.dtype)
      np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=folder)
  print('same', folder)
assert 'seed_acme' not in sys.modules
"""


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)


def _make_run(folder, name, network_changes, agent_changes):
  """Makes a run whose random weights act differently from step to step."""
  config = registry.load(name)
  config = dataclasses.replace(
    config,
    network=dataclasses.replace(config.network, **network_changes),
    agent=dataclasses.replace(config.agent, **agent_changes),
  )
  run = run_directory.create(folder)
  saved_config.save(config, run.config)
  network = built.make_acting(config).agent.acting.make()
  random = np.random.default_rng(3)
  arrays = {key: variable.numpy() for key, variable in saved_variables.acting(network).items()}
  for key, array in arrays.items():
    if array.dtype == np.float32 and array.ndim > 1:
      arrays[key] = random.normal(size=array.shape).astype(np.float32)
  checkpoint_writer.save(
    run.checkpoints,
    7,
    arrays,
    {'counts': counting.Counts(agent_steps=4_321, updates=7)._asdict(), 'resumptions': 0},
    keep=1,
  )
  return config


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  """Returns {name: (configuration, run folder, folder of its export)}."""
  folder = tmp_path_factory.mktemp('runs')
  runs = {}
  for name, (config_name, network, agent) in _POLICIES.items():
    config = _make_run(folder / name, config_name, network, agent)
    record = seed_acme.export_policy(str(folder / name), folder / f'{name}_exported')
    assert record['greedy'] is True
    runs[name] = config, folder / name, folder / f'{name}_exported'
  return runs


def _played(config, run_dir):
  """Returns inputs and actions of `load_policy`, with episodes that begin at different steps."""
  policy = seed_acme.load_policy(str(run_dir))
  policy.reset(batch_size=_ROWS)
  environment = environments.make(config.environment, _ROWS, seed=1)
  timestep, steps = environment.reset(), []
  for t in range(_STEPS):
    is_first = timestep.step_type == types.FIRST
    if t == 5:
      is_first = is_first | np.array([False, True, False])  # an episode that was broken off
    action = policy(timestep.observation, timestep.reward, timestep.discount, is_first=is_first)
    steps.append(
      {
        'observation': timestep.observation,
        'reward': timestep.reward,
        'discount': timestep.discount,
        'is_first': is_first,
        'action': action,
      }
    )
    timestep = environment.step(action)
  environment.close()
  return tree.map_structure(np.array, steps)


@pytest.fixture(scope='module', name='played')
def _all_played(runs):
  """Returns {name: what `_played` returns}."""
  return {name: _played(config, run_dir) for name, (config, run_dir, _) in runs.items()}


def test_it_acts_as_load_policy_does_where_there_is_only_tensorflow(runs, played, tmp_path):
  for name, steps in played.items():  # otherwise any function would do
    actions = [step['action'].tobytes() for step in steps]
    assert len(set(actions)) > 1, f'{name} always does the same'
  file = tmp_path / 'played.pickle'
  file.write_bytes(pickle.dumps([(str(runs[name][2]), steps) for name, steps in played.items()]))
  done = subprocess.run(
    [sys.executable, '-c', _ELSEWHERE, str(file)],
    cwd=tmp_path,
    timeout=400,
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  assert done.stdout.count('same') == len(_POLICIES)


@pytest.mark.parametrize('name', ['r2d2', 'dict_observation'])
def test_the_signatures_take_and_give_named_tensors(name, runs, played):
  """The table in the README has exactly these names."""
  config, _, folder = runs[name]
  loaded = tf.saved_model.load(str(folder))
  signature = loaded.signatures['step']
  state = loaded.signatures['initial_state'](batch_size=tf.constant(_ROWS))
  for step in played[name][:8]:
    observation = step['observation']
    given = (
      {f'observation_{key}': value for key, value in observation.items()}
      if isinstance(observation, dict)
      else {'observation': observation}
    )
    given.update({key: step[key] for key in ('reward', 'discount', 'is_first')})
    assert set(signature.structured_input_signature[1]) == {*given, *state}
    result = signature(**{key: tf.constant(value) for key, value in given.items()}, **state)
    np.testing.assert_allclose(result.pop('action'), step['action'], atol=1e-5)
    assert set(result) == set(state)
    state = result
  readme = (folder / 'README.md').read_text()
  for key in ('action', *given, *state):
    assert f'| `{key}` | [B' in readme
  assert '4,321 agent steps' in readme and config.environment.id in readme


def test_the_command_says_what_it_has_written_and_its_sampled_actions_are_drawn_anew(
  runs, tmp_path, capsys
):
  config, run_dir, greedy = runs['continuous']
  out = tmp_path / 'new' / 'policy'
  command = ['export', str(run_dir), f'--out={out}', '--sampled', '--json']
  assert cli.main(command) == 0
  record = json.loads(capsys.readouterr().out)
  assert record == {
    'path': str(out),
    'run_dir': str(run_dir),
    'environment': config.environment.id,
    'checkpoint_updates': 7,
    'checkpoint_agent_steps': 4_321,
    'greedy': False,
  }
  assert (out / 'saved_model.pb').is_file()
  assert [path.name for path in out.parent.iterdir()] == ['policy']
  assert cli.main(command) == 2
  assert 'is there already: give a new or an empty folder' in capsys.readouterr().err

  spreads = []
  for path in (greedy, out):
    policy = tf.saved_model.load(str(path))
    state, zeros = policy.initial_state(200), np.zeros(200, np.float32)
    observation = np.zeros((200, 3), np.float32)
    action, _ = policy.step(observation, zeros, zeros, np.ones(200, bool), state)
    spreads.append(np.std(action))
  assert spreads[0] < 1e-6 and spreads[1] > 0.01


@pytest.mark.parametrize(
  'arguments, said',
  [
    ([], 'export needs a run folder and --out=FOLDER'),
    (['{run}'], 'export needs a run folder and --out=FOLDER'),
    (['{run}', '--out=gs://bucket/policy'], 'is in a bucket: give a local folder'),
    (['{tmp}', '--out={tmp}/new'], 'is not the folder of a run'),
    (['{run}', '--out={tmp}/a_file/policy'], 'check the path and its permissions'),
    (['{run}', '--out=/proc/policy'], 'check the path and its permissions'),
    (['{run}', '--out={tmp}/x', '--episodes=3'], '--episodes'),
  ],
)
def test_wrong_arguments_are_answered_in_words(arguments, said, runs, tmp_path, capsys):
  (tmp_path / 'a_file').write_text('')
  before = sorted(pathlib.Path(tmp_path).iterdir())
  given = [part.format(run=runs['r2d2'][1], tmp=tmp_path) for part in arguments]
  assert cli.main(['export', *given]) == 2
  assert said in capsys.readouterr().err
  assert sorted(pathlib.Path(tmp_path).iterdir()) == before


def test_a_full_disk_is_named_and_nothing_is_left(runs, tmp_path, monkeypatch, capsys):
  def full(module, path, signatures):
    folder = pathlib.Path(path)
    folder.mkdir(exist_ok=True)
    (folder / 'saved_model.pb').write_bytes(b'half')
    raise tf.errors.ResourceExhaustedError(None, None, 'part-00000; No space left on device')

  monkeypatch.setattr(tf.saved_model, 'save', full)
  assert cli.main(['export', str(runs['r2d2'][1]), f'--out={tmp_path / "policy"}']) == 1
  assert f'the disk of {tmp_path} is full' in capsys.readouterr().err
  assert list(tmp_path.iterdir()) == []
