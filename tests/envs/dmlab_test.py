"""DeepMind Lab's adapter on a stand-in for the package, which follows its published API."""

import sys

import numpy as np
import pytest

from seed_acme import types
from seed_acme.envs import dmlab
from seed_acme.envs import dmlab_levels
from seed_acme.envs import instructions
from seed_acme.envs import registry
from seed_acme.testing import environment_contract
from tests.envs import configs
from tests.envs import dmlab_stand_in

MAZE = 'dmlab:rooms_watermaze'
EXPLORE = 'dmlab:explore_goal_locations_small'
LANGUAGE = 'dmlab:language_execute_random_task'
FORWARD = 0


@pytest.fixture(name='lab', autouse=True)
def fixture_lab(monkeypatch, tmp_path):
  """Returns the module that the adapter imports; `made` lists the environments, in order."""
  module = dmlab_stand_in.module()
  monkeypatch.setitem(sys.modules, 'deepmind_lab', module)
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  return module


def make(environment_id=MAZE, num_environments=1, seed=1, **settings):
  return registry.make(configs.of(environment_id, **settings), num_environments, seed)


def play(environment, num_steps, action=FORWARD):
  rows = [environment.reset()]
  for _ in range(num_steps):
    rows.append(environment.step(np.full(environment.num_environments, action, np.int32)))
  return rows


class TestContract(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return make(MAZE, num_environments, seed, episode_length_s=2)


class TestContractWithInstructions(environment_contract.EnvironmentContract):
  def make_environment(self, num_environments, seed):
    return make(LANGUAGE, num_environments, seed, episode_length_s=2, instructions=True)


def test_the_actions_are_the_nine_of_impala_and_seed():
  assert dmlab.ACTIONS == (
    (0, 0, 0, 1, 0, 0, 0),
    (0, 0, 0, -1, 0, 0, 0),
    (0, 0, -1, 0, 0, 0, 0),
    (0, 0, 1, 0, 0, 0, 0),
    (-20, 0, 0, 0, 0, 0, 0),
    (20, 0, 0, 0, 0, 0, 0),
    (-20, 0, 0, 1, 0, 0, 0),
    (20, 0, 0, 1, 0, 0, 0),
    (0, 0, 0, 0, 1, 0, 0),
  )
  assert tuple(name for name, *_ in dmlab_stand_in.ACTION_SPEC) == dmlab.ACTION_NAMES


def test_each_action_is_played_four_frames_and_its_rewards_are_summed(lab):
  environment = make()
  environment.reset()
  rewards = [float(environment.step(np.array([action])).reward[0]) for action in range(9)]
  assert lab.made[0].actions == [list(action) for action in dmlab.ACTIONS]
  assert lab.made[0].num_repeats == [4] * 9
  assert rewards == [4, -4, 0, 0, 0, 0, 4, 4, 0]
  assert environment.spec.frames_per_step == 4
  environment.close()


def test_other_repeats(lab):
  environment = make(num_action_repeats=1)
  assert play(environment, 2)[-1].reward[0] == 1
  assert lab.made[0].num_repeats == [1, 1] and environment.spec.frames_per_step == 1


def test_actions_of_a_level_beside_the_usual_ones_are_0(lab):
  play(make('dmlab:demos/more_actions'), 1, action=8)
  assert lab.made[0].actions == [[0, 0, 0, 0, 1, 0, 0, 0]]


def test_unusual_actions_are_refused(lab, monkeypatch):
  monkeypatch.setattr(lab.Lab, 'action_spec', lambda self: [{'name': 'MOVE', 'min': 0, 'max': 1}])
  with pytest.raises(types.UserError, match=r'has the actions MOVE: expected LOOK_LEFT_RIGHT'):
    make()


def test_the_image_is_72_by_96_and_as_it_comes(lab):
  environment = make()
  spec = environment.spec.observation
  assert (spec.shape, spec.dtype) == ((72, 96, 3), np.uint8)
  row = environment.reset()
  np.testing.assert_array_equal(row.observation[0], lab.made[0].observations()['RGB_INTERLEAVED'])
  config = lab.made[0].config
  assert (config['width'], config['height'], config['logLevel']) == ('96', '72', 'WARN')
  assert make(width=32, height=24).reset().observation.shape == (1, 24, 32, 3)


def test_the_screen_changes_with_every_step():
  """This includes `num_action_repeats` 1, a value that failed elsewhere."""
  for repeats in (1, 2, 4):
    rows = play(make(num_action_repeats=repeats), 5)
    for before, after in zip(rows, rows[1:]):
      assert (before.observation != after.observation).any()


def test_names_of_dmlab_30_may_be_short_or_whole(lab):
  make()
  make('dmlab:contributed/dmlab30/rooms_watermaze')
  make('dmlab:demos/extra_entities')
  assert [made.level for made in lab.made] == [
    'contributed/dmlab30/rooms_watermaze',
    'contributed/dmlab30/rooms_watermaze',
    'demos/extra_entities',
  ]


def test_every_episode_has_a_seed_drawn_from_that_of_its_environment(lab):
  environment = make(num_environments=2, seed=5)
  for _ in range(3):
    environment.reset()
  first, second = (made.seeds for made in lab.made)
  assert len({*first, *second}) == 6
  assert all(0 <= seed < 2**31 for seed in first)
  again = make(num_environments=1, seed=5)
  for _ in range(3):
    again.reset()
  assert lab.made[2].seeds == first


def ends(environment, least=40):
  """Returns (length, discount, the last two rows) of episodes."""
  rows, found, length = [environment.reset()], [], 0
  while len(found) < least:
    rows.append(environment.step(np.array([FORWARD])))
    length = 0 if rows[-1].step_type[0] == types.FIRST else length + 1
    if rows[-1].step_type[0] == types.LAST:
      before, last = rows[-2], rows[-1]
      found.append((length, float(last.discount[0]), before, last))
  return found


def test_time_up_truncates_and_an_earlier_end_terminates():
  found = ends(make(episode_length_s=2))
  early = dmlab_stand_in.GOAL_FRAMES // 4
  assert {(length, discount) for length, discount, *_ in found} == {(30, 1.0), (early, 0.0)}
  assert {float(last.reward[0]) for length, _, _, last in found if length == early} == {14.0}


@pytest.mark.slow
def test_the_length_of_dmlab_30_is_known_and_overridden_by_the_setting(lab):
  found = ends(make('dmlab:rooms_keys_doors_puzzle'), least=5)
  assert (60 * 60 // 4, 1.0) in {(length, discount) for length, discount, *_ in found}
  assert 'episodeLengthSeconds' not in lab.made[0].config
  make(episode_length_s=7)
  assert lab.made[1].config['episodeLengthSeconds'] == '7'


def test_repeats_that_do_not_divide_the_length_end_it_all_the_same():
  found = ends(make(episode_length_s=2, num_action_repeats=7))
  assert {(length, discount) for length, discount, *_ in found} == {(18, 1.0), (6, 0.0)}


def test_an_end_of_a_level_of_unknown_length_terminates():
  found = ends(make('dmlab:demos/extra_entities'), least=10)
  assert {discount for _, discount, *_ in found} == {0.0}


def test_last_keeps_the_observation_before_it():
  environment = make(LANGUAGE, episode_length_s=2, instructions=True)
  for _, _, before, last in ends(environment, least=5):
    for name in ('image', 'instruction'):
      np.testing.assert_array_equal(before.observation[name], last.observation[name])


def test_the_level_cache_is_written_then_read(lab, tmp_path):
  folder = str(tmp_path / 'levels')
  for _ in range(2):
    environment = make(EXPLORE, level_cache=folder)
    environment.reset()
    environment.reset()
  assert [made.num_compiled for made in lab.made] == [2, 0]
  without = make(EXPLORE)
  without.reset()
  assert lab.made[2].num_compiled == 1 and lab.made[2].level_cache is None


def test_test_levels_are_played_with_their_own_seeds(lab):
  make('dmlab:rooms_collect_good_objects_train', test=True)
  make('dmlab:rooms_collect_good_objects_test', test=True)
  make(test=True)
  make()
  levels = [dmlab_levels.short_name(made.level) for made in lab.made]
  assert levels[:3] == ['rooms_collect_good_objects_test'] * 2 + ['rooms_watermaze']
  for made in lab.made[:3]:
    assert made.config['allowHoldOutLevels'] == 'true'
    assert made.config['mixerSeed'] == '1611489005' == str(0x600D5EED)
  assert not {'allowHoldOutLevels', 'mixerSeed'} & set(lab.made[3].config)
  rows = [make(test=test).reset() for test in (True, False)]
  assert (rows[0].observation != rows[1].observation).any()


def test_held_out_levels_are_not_for_training():
  with pytest.raises(types.UserError, match='held out for testing: set test to True'):
    registry.check(configs.of('dmlab:rooms_collect_good_objects_test'))


def test_psychlab_is_told_where_its_images_are(lab, tmp_path):
  level = 'dmlab:psychlab_continuous_recognition'
  with pytest.raises(types.UserError, match='needs the setting dataset_path'):
    make(level)
  make(level, dataset_path=str(tmp_path)).reset()
  assert lab.made[0].config['datasetPath'] == str(tmp_path)


def test_renderer_and_folders_reach_the_package(lab, tmp_path):
  make(renderer='hardware', runfiles_path='/somewhere', temp_folder=str(tmp_path))
  made = lab.made[0]
  assert (made.renderer, made.temp_folder) == ('hardware', str(tmp_path))
  assert lab.runfiles == ['/somewhere']
  make()
  assert (lab.made[1].renderer, lab.made[1].temp_folder) == ('software', None)


def test_instructions_are_arrays_of_word_ids(lab):
  environment = make(LANGUAGE, instructions=True, max_words=6)
  assert list(environment.spec.observation) == ['image', 'instruction']
  row = environment.reset()
  text = lab.made[0].observations()['INSTR']
  assert row.observation['instruction'].dtype == np.int32
  np.testing.assert_array_equal(row.observation['instruction'][0], instructions.encode(text, 6))
  assert (row.observation['instruction'][0] > 0).sum() == 4


def test_pictures():
  environment = registry.make(configs.of(MAZE), 1, seed=1, renders=True)
  row = environment.reset()
  np.testing.assert_array_equal(environment.render(), row.observation[0])


def test_close_reaches_the_package(lab):
  environment = make(num_environments=2)
  environment.close()
  assert [made.close() for made in lab.made] == [False, False]  # already closed


@pytest.mark.parametrize(
  ('environment_id', 'settings', 'message'),
  [
    ('dmlab:rooms_watermze', {}, r'unknown environment .* \(near: dmlab:rooms_watermaze'),
    ('dmlab:', {}, r"unknown environment 'dmlab:'"),
    (MAZE, {'repeat': 4}, r"no setting 'repeat': expected width, height, num_action_repeats"),
    (MAZE, {'num_action_repeats': 0}, r'dmlab: num_action_repeats \(0\) must be >= 1'),
    (MAZE, {'width': 96.0}, r'width \(96.0\) is of type float; expected int: write 96'),
    (MAZE, {'test': 'yes'}, r"test \('yes'\) is of type str; expected bool"),
    (MAZE, {'renderer': 'egl'}, r"renderer \('egl'\) must be one of 'software', 'hardware'"),
    (MAZE, {'level_cache': 3}, r'level_cache \(3\) is of type int; expected str'),
  ],
)
def test_wrong_ids_and_settings_are_user_errors(environment_id, settings, message):
  with pytest.raises(types.UserError, match=message):
    registry.check(configs.of(environment_id, **settings))


def test_what_the_package_refuses_is_a_user_error():
  with pytest.raises(types.UserError, match="demos/absent' cannot be loaded: Invalid level"):
    make('dmlab:demos/absent')


def test_a_wrong_action_is_an_error():
  environment = make()
  environment.reset()
  with pytest.raises(ValueError, match=r'action 9: expected 0 \.\.\. 8'):
    environment.step(np.array([9]))


def test_the_package_is_named_where_it_is_missing(monkeypatch):
  monkeypatch.delitem(sys.modules, 'deepmind_lab')
  monkeypatch.setattr(sys, 'path', [])
  with pytest.raises(types.UserError, match=r'needs deepmind_lab: build .*google-deepmind/lab'):
    registry.check(configs.of(MAZE))
  listed = {known.id: known for known in registry.known_environments()}
  assert not listed['dmlab:LEVEL'].is_available
  assert 'google-deepmind/lab' in listed['dmlab:LEVEL'].install


def test_scores_are_normalised_by_those_of_the_pair():
  assert registry.normalized_score(MAZE, 54) == pytest.approx(1)
  assert registry.normalized_score('dmlab:contributed/dmlab30/rooms_watermaze', 4.065) == 0
  assert registry.normalized_score('dmlab:lt_chasm', 5) is None
