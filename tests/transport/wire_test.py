"""Messages: round trips, errors that name the field, and garbage."""

from __future__ import annotations

import json
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import pytest
import tree

from seed_acme import core
from seed_acme import types
from seed_acme.transport import wire

NESTED = types.EnvironmentSpec(
  observation={
    'camera': dm_specs.BoundedArray((5, 4, 3), np.uint8, 0, 255),
    'joints': {'position': dm_specs.Array((3,), np.float32), 'touching': dm_specs.Array((), bool)},
    'nothing': dm_specs.Array((0, 2), np.float32),
    'clock': (dm_specs.Array((1,), np.int64), dm_specs.Array((), np.float16)),
  },
  action={
    'button': dm_specs.DiscreteArray(3, dtype=np.int32),
    'force': dm_specs.BoundedArray((2,), np.float32, -1, 1),
  },
)
FLAT = types.EnvironmentSpec(
  observation=dm_specs.Array((2,), np.float32), action=dm_specs.DiscreteArray(4, dtype=np.int32)
)
SPECS = {'nested': NESTED, 'flat': FLAT}


def random_leaf(spec: dm_specs.Array, size: int, random: np.random.Generator) -> np.ndarray:
  shape = (size, *spec.shape)
  if spec.dtype.kind in 'ui':
    return random.integers(0, 100, shape).astype(spec.dtype)
  if spec.dtype.kind == 'b':
    return random.random(shape) < 0.5
  return random.normal(size=shape).astype(spec.dtype)


def make_request(spec: types.EnvironmentSpec, size: int, seed: int = 0) -> types.ActorRequest:
  random = np.random.default_rng(seed)
  numbers = lambda: random.normal(size=size).astype(np.float32)
  return types.ActorRequest(
    2**40 + 3,
    random.permutation(size).astype(np.int32),
    random.integers(1, 2**62, size),
    types.VectorTimeStep(
      random.integers(0, 3, size).astype(np.uint8),
      numbers(),
      numbers(),
      tree.map_structure(lambda s: random_leaf(s, size, random), spec.observation),
      numbers(),
    ),
  )


def assert_equal(first: types.Nest, second: types.Nest) -> None:
  tree.assert_same_structure(first, second)

  def check(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a, b)
    assert np.asarray(a).dtype == np.asarray(b).dtype

  tree.map_structure(check, first, second)


@pytest.mark.parametrize('name', SPECS)
@pytest.mark.parametrize('size', [1, 3, 8])
def test_round_trips(name, size):
  spec = SPECS[name]
  actor, server = wire.GroupCodec(spec, size), wire.GroupCodec(spec, size)
  request = make_request(spec, size)
  decoded = server.decode_request(actor.encode_request(request))
  assert_equal(decoded, request)
  for leaf in tree.flatten(decoded.timestep):
    assert leaf.flags.aligned
  random = np.random.default_rng(2)
  actions = tree.map_structure(lambda s: random_leaf(s, size, random), spec.action)
  assert_equal(actor.decode_reply(server.encode_actions(actions)), actions)


def test_what_is_not_contiguous_is_encoded_by_value():
  codec = wire.GroupCodec(FLAT, 3)
  request = make_request(FLAT, 3)
  timestep = request.timestep
  odd = request._replace(
    timestep=timestep._replace(
      observation=np.asfortranarray(timestep.observation), reward=np.repeat(timestep.reward, 2)[::2]
    )
  )
  assert codec.encode_request(odd) == codec.encode_request(request)


@pytest.mark.parametrize(
  'field, value, said',
  [
    ('reward', np.zeros(3, np.float64), r'reward is float64\[3\].*float32\[3\]'),
    ('discount', np.zeros(2, np.float32), r'discount is float32\[2\].*float32\[3\]'),
    ('score', np.zeros((3, 1), np.float32), r'score is float32\[3, 1\]'),
    ('step_type', np.zeros(3, np.int64), r'step_type is int64\[3\].*uint8\[3\]'),
    ('observation', np.zeros((3, 2), np.uint8), r'observation is uint8\[3, 2\].*float32\[3, 2\]'),
  ],
)
def test_a_wrong_array_is_named_when_it_is_encoded(field, value, said):
  request = make_request(FLAT, 3)
  request = request._replace(timestep=request.timestep._replace(**{field: value}))
  with pytest.raises(ValueError, match=said):
    wire.GroupCodec(FLAT, 3).encode_request(request)


def test_a_wrong_leaf_of_a_nest_is_named_by_its_path():
  request = make_request(NESTED, 2)
  request.timestep.observation['joints']['position'] = np.zeros((2, 4), np.float32)
  with pytest.raises(ValueError, match='observation/joints/position is float32'):
    wire.GroupCodec(NESTED, 2).encode_request(request)
  with pytest.raises(ValueError, match='action/force is float64'):
    wire.GroupCodec(NESTED, 2).encode_actions(
      {'button': np.zeros(2, np.int32), 'force': np.zeros((2, 2))}
    )


@pytest.mark.parametrize(
  'env_ids, run_ids, said',
  [
    (np.zeros(3, np.int64), np.zeros(3, np.int64), 'env_ids is int64'),
    (np.zeros(3, np.int32), np.zeros(3, np.int32), 'run_ids is int32'),
    (np.zeros(2, np.int32), np.zeros(3, np.int64), r'env_ids is int32\[2\]'),
  ],
)
def test_wrong_ids_are_named(env_ids, run_ids, said):
  request = make_request(FLAT, 3)._replace(env_ids=env_ids, run_ids=run_ids)
  with pytest.raises(ValueError, match=said):
    wire.GroupCodec(FLAT, 3).encode_request(request)


@pytest.mark.parametrize('change', ['missing', 'extra'])
def test_another_number_of_leaves_is_an_error_where_it_is_encoded(change):
  request = make_request(NESTED, 2)
  if change == 'missing':
    del request.timestep.observation['nothing']
  else:
    request.timestep.observation['zoo'] = np.zeros(2, np.float32)
  with pytest.raises(ValueError, match='observation/joints/position'):
    wire.GroupCodec(NESTED, 2).encode_request(request)


def test_a_message_of_another_length_is_refused():
  codec = wire.GroupCodec(FLAT, 3)
  message = codec.encode_request(make_request(FLAT, 3))
  for wrong in (b'', message[:-1], message + b'\0', message * 2):
    with pytest.raises(ValueError, match=f'{len(wrong)} bytes, expected {len(message)}'):
      codec.decode_request(wrong)


def test_refusals_and_the_end_reach_the_actor():
  codec = wire.GroupCodec(FLAT, 3)
  with pytest.raises(core.Refused, match='two actors – zwei'):
    codec.decode_reply(wire.encode_refusal('two actors – zwei'))
  with pytest.raises(core.ChannelClosed):
    codec.decode_reply(wire.encode_stopped())


def hello(**changes: Any) -> bytes:
  said = json.loads(wire.GroupCodec(FLAT, 2).hello(np.array([4, 6], np.int32)))
  said.update(changes)
  return json.dumps({k: v for k, v in said.items() if v is not None}).encode()


def test_hello_gives_the_server_the_same_codec():
  codec, env_ids, start = wire.GroupCodec.check_hello(hello(start=[5, 2]), FLAT, 10)
  assert start == wire.Start(joined=5, number=2)
  assert env_ids == {4, 6} and codec.num_environments == 2
  request = make_request(FLAT, 2)
  assert codec.encode_request(request) == wire.GroupCodec(FLAT, 2).encode_request(request)


def test_the_first_and_the_last_environment_of_a_run_fit():
  _, env_ids, _ = wire.GroupCodec.check_hello(hello(env_ids=[0, 9]), FLAT, 10)
  assert env_ids == {0, 9}


@pytest.mark.parametrize(
  'changes, said',
  [
    ({'protocol': 99}, 'protocol 99, the server 3'),
    ({'start': 3}, 'no greeting'),
    ({'start': [3]}, 'no greeting'),
    ({'protocol': None}, 'no greeting'),
    ({'env_ids': []}, 'env_ids'),
    ({'env_ids': [4, 10]}, r'\[4, 10\].*0 \.\.\. 9'),
    ({'env_ids': [-1, 4]}, r'0 \.\.\. 9'),
    ({'env_ids': 'many'}, 'no greeting'),
    ({'env_ids': [float('inf')]}, 'no greeting'),
    ({'env_ids': [float('nan')]}, 'no greeting'),
    ({'env_ids': [4, 4]}, 'one of them twice'),
    ({'env_ids': {'4': 1, '04': 2}}, 'no greeting'),
    ({'env_ids': ['4', '6']}, 'no greeting'),
    ({'env_ids': [True, False]}, 'no greeting'),
    ({'env_ids': [4.0]}, 'no greeting'),
    ({'env_ids': [[4], [6]]}, 'no greeting'),
    ({'start': {'1': 1, '2': 2}}, 'no greeting'),
    ({'start': ['1', '2']}, 'no greeting'),
    ({'start': [1, 2, 3]}, 'no greeting'),
    ({'start': [1, 1 << 63]}, 'no greeting'),
    ({'protocol': '3'}, 'no greeting'),
    ({'protocol': [3]}, 'no greeting'),
    ({'spec': None}, 'no greeting'),
    ({'spec': 3}, 'no specification'),
    ({'spec': {}}, 'no specification'),
  ],
)
def test_a_hello_that_does_not_fit_is_named(changes, said):
  with pytest.raises(ValueError, match=said):
    wire.GroupCodec.check_hello(hello(**changes), FLAT, 10)


@pytest.mark.parametrize(
  'settings, said',
  [
    ({'seed': '2'}, "seed is 2, the learner's 1: start every node with the same configuration"),
    ({'seed': '1', 'more': 'x'}, "more is x, the learner's absent"),
    ({'seed': 1}, "seed is 1, the learner's 1"),
    (None, 'the actor is of an earlier version of seed_acme: install the same everywhere'),
    ([['seed', '1']], 'no greeting'),
  ],
)
def test_settings_that_differ_from_the_learner_s_are_named(settings, said):
  message = hello(settings=settings)
  with pytest.raises(ValueError, match=said):
    wire.GroupCodec.check_hello(message, FLAT, 10, {'seed': '1'})


@pytest.mark.parametrize('expected', [{'seed': '1'}, None])
def test_settings_that_agree_fit(expected):
  message = wire.GroupCodec(FLAT, 2, {'seed': '1'}).hello(np.array([4, 6], np.int32))
  _, env_ids, _ = wire.GroupCodec.check_hello(message, FLAT, 10, expected)
  assert env_ids == {4, 6}


@pytest.mark.parametrize(
  'spec, said',
  [
    (types.EnvironmentSpec(dm_specs.Array((3,), np.float32), FLAT.action), 'observation'),
    (types.EnvironmentSpec(dm_specs.Array((2,), np.uint8), FLAT.action), 'observation'),
    (types.EnvironmentSpec({'x': FLAT.observation}, FLAT.action), 'observation/x'),
    (types.EnvironmentSpec((FLAT.observation,) * 2, FLAT.action), 'observation/0'),
    (types.EnvironmentSpec(FLAT.observation, dm_specs.Array((2,), np.float32)), 'action'),
    (types.EnvironmentSpec(FLAT.observation, [FLAT.action]), 'action/0'),
    (types.EnvironmentSpec(FLAT.observation, FLAT.action, 4), 'frames_per_step'),
  ],
)
def test_another_environment_is_named_in_both_directions(spec, said):
  env_ids = np.array([4, 6], np.int32)
  for actor, server in ((FLAT, spec), (spec, FLAT)):
    with pytest.raises(ValueError, match=said):
      wire.GroupCodec.check_hello(wire.GroupCodec(actor, 2).hello(env_ids), server, 10)


def _with_another_value(tree, random):
  """Returns a copy in which one node, anywhere, is another JSON value."""
  others = [
    None,
    True,
    -1,
    1e300,
    1 << 70,
    '',
    '4',
    'f4,(',
    '(2)i4',
    [],
    {},
    [[]],
    {'4': 1, '04': 2},
  ]
  if not isinstance(tree, (dict, list)) or not tree or random.integers(6) == 0:
    return others[random.integers(len(others))]
  copy = dict(tree) if isinstance(tree, dict) else list(tree)
  key = list(tree)[random.integers(len(tree))] if isinstance(tree, dict) else None
  key = random.integers(len(tree)) if key is None else key
  copy[key] = _with_another_value(tree[key], random)
  return copy


@pytest.mark.parametrize('expected', [FLAT, NESTED, None])
def test_a_greeting_of_another_form_is_refused_and_raises_nothing_else(expected):
  random = np.random.default_rng(2)
  whole = json.loads(wire.GroupCodec(expected or NESTED, 2).hello(np.array([4, 6], np.int32)))
  num_refused = 0
  for _ in range(2000):
    message = json.dumps(_with_another_value(whole, random)).encode()
    try:
      wire.GroupCodec.check_hello(message, expected, 10)
    except ValueError:
      num_refused += 1
  assert num_refused > 1000  # array names, for example, may be anything


def test_rubbish_is_no_greeting():
  random = np.random.default_rng(0)
  rubbish = [random.bytes(n) for n in random.integers(0, 60, 200)]
  rubbish += [b'null', b'[]', b'{}', b'7', b'"x"', b'[' * 100_000, b'{"protocol":1}']
  whole = hello()
  for _ in range(300):  # nearly right
    changed = bytearray(whole)
    changed[random.integers(len(whole))] = random.integers(256)
    rubbish.append(bytes(changed))
  for message in rubbish:
    try:
      _, env_ids, _ = wire.GroupCodec.check_hello(message, FLAT, 10)
    except ValueError:
      continue
    assert max(env_ids) < 10  # with another digit, a greeting is still valid
