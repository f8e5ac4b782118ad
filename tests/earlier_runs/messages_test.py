"""Messages of an earlier version (`messages/recorded.json`) are read, and still written so."""

import numpy as np
import pytest
import tree

from seed_acme import core
from seed_acme import version
from seed_acme.envs.interpreters import spec_json
from seed_acme.transport import joining
from seed_acme.transport import unix_protocol
from seed_acme.transport import wire
from tests.earlier_runs.messages import content

_RECORDED = content.recorded()
_CODEC = wire.GroupCodec(content.SPEC, content.ENV_IDS.size)


def _assert_equal(found, expected):
  tree.assert_same_structure(found, expected)
  for one, other in zip(tree.flatten(found), tree.flatten(expected)):
    assert np.asarray(one).dtype == np.asarray(other).dtype
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('name', _RECORDED)
def test_it_is_written_as_it_was(name):
  assert content.written()[name] == _RECORDED[name]


@pytest.mark.parametrize('spec', [content.SPEC, None], ids=['known', 'unknown'])
def test_an_actor_is_greeted(spec):
  codec, env_ids, start = wire.GroupCodec.check_hello(_RECORDED['hello'], spec, 10)
  assert spec_json.encode(codec.spec) == spec_json.encode(content.SPEC)
  assert env_ids == set(content.ENV_IDS.tolist()) and start == content.START
  assert wire.decode_welcome(_RECORDED['welcome']) == content.INSTANCE


def test_the_first_frame_of_a_unix_socket_is_taken_apart():
  frame = _RECORDED['unix greeting']
  message = frame[unix_protocol.HEADER_BYTES :]
  assert frame.startswith(unix_protocol.header(len(message)))
  assert unix_protocol.split_greeting(message) == (content.TOKEN, _RECORDED['hello'])


def test_a_request_and_its_answers_are_read():
  _assert_equal(_CODEC.decode_request(_RECORDED['request']), content.REQUEST)
  _assert_equal(_CODEC.decode_reply(_RECORDED['actions']), content.ACTIONS)
  with pytest.raises(core.Refused, match=content.REFUSAL):
    _CODEC.decode_reply(_RECORDED['refusal'])


@pytest.mark.parametrize(
  'name, kind',
  [('stopped', core.ChannelClosed), ('paused', core.ServerPaused), ('taken', core.ChannelTaken)],
)
def test_the_end_of_a_stream_is_read(name, kind):
  with pytest.raises(core.ChannelClosed) as caught:
    _CODEC.decode_reply(_RECORDED[name])
  assert type(caught.value) is kind


def test_a_node_joins():
  members = joining.Members({'actor': content.SETTINGS}, resumptions=3)
  join = content.of_version(_RECORDED['join'], version.__version__)
  number = 3 * joining.STARTS_BETWEEN_RESUMPTIONS
  assert joining.parse_welcome(members.join(join)).number == number
