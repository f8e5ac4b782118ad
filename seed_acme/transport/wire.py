"""Messages between actors and learner: greetings, requests and replies.

Both sides derive the same list of fields from the environment's specification. The learner
compares the specifications, and the settings that actors share with it, whenever a stream opens.
Nothing is unpickled, so a message cannot run code.
"""

from __future__ import annotations

from collections.abc import Mapping
import json
from typing import Any, NamedTuple

import numpy as np
import tree

from seed_acme import core
from seed_acme import types
from seed_acme.envs.interpreters import spec_json
from seed_acme.transport import array_codec

PROTOCOL = 3
_OK, _REFUSED, _STOPPED, _PAUSED, _TAKEN = 0, 1, 2, 3, 4
_STATUS = np.dtype('<i8')
_INTEGERS = 1 << 63
_MAX_DIFFERENCES = 3  # named in a refusal
_NO_GREETING = 'the first message of the stream is no greeting of an actor'
_ENDS: dict[int, type[core.ChannelClosed]] = {
  _STOPPED: core.ChannelClosed,
  _PAUSED: core.ServerPaused,
  _TAKEN: core.ChannelTaken,
}


class Start(NamedTuple):
  """One start of an actor. Of two starts the greater one is later.

  joined: when the learner admitted the actor's node, in ms of the learner's clock, or just after
  the latest that an actor has shown it if that clock is behind, so that the order also holds after
  another learner has replaced it; 0 = started by a launcher, which starts each node only once.
  number: how often the actor was started before, over all resumptions of the run.
  """

  joined: int = 0
  number: int = 0

  def following(self) -> Start:
    """Returns the next start on the same node."""
    return self._replace(number=self.number + 1)


FIRST_START = Start()


def _leaf_fields(prefix: str, spec: types.Nest, num_environments: int) -> list[array_codec.Field]:
  return [
    array_codec.Field(
      '/'.join((prefix, *map(str, path))), np.dtype(leaf.dtype).str, (num_environments, *leaf.shape)
    )
    for path, leaf in tree.flatten_with_path(spec)
  ]


def _request_arrays(request: types.ActorRequest) -> list[np.ndarray]:
  timestep = request.timestep
  return [
    np.asarray(request.request_number, np.int64),
    request.run_ids,
    request.env_ids,
    timestep.step_type,
    timestep.reward,
    timestep.discount,
    timestep.score,
    *tree.flatten(timestep.observation),
  ]


class RequestWriter:
  """Encodes requests into `frame`, each over the last one, without allocating memory."""

  def __init__(self, codec: array_codec.ArrayCodec, header: bytes):
    self._codec = codec
    self.frame = bytearray(header + bytes(codec.num_bytes))
    self._views = codec.views(self.frame, len(header))

  def write(self, request: types.ActorRequest) -> None:
    """Writes a request into `frame`; raises ValueError if an array does not match its field."""
    self._codec.write(_request_arrays(request), self._views)


class GroupCodec:
  """Encodes and decodes requests and replies of one group of E environments."""

  def __init__(
    self,
    spec: types.EnvironmentSpec,
    num_environments: int,
    settings: Mapping[str, str] | None = None,
  ):
    """settings: the actor's, by name, as text, which `hello` says; the server needs none."""
    self.spec = spec
    self._settings = settings
    size = (num_environments,)
    self.num_environments = num_environments
    self._request = array_codec.ArrayCodec(
      [
        array_codec.Field('request_number', '<i8', ()),
        array_codec.Field('run_ids', '<i8', size),
        array_codec.Field('env_ids', '<i4', size),
        array_codec.Field('step_type', '|u1', size),
        array_codec.Field('reward', '<f4', size),
        array_codec.Field('discount', '<f4', size),
        array_codec.Field('score', '<f4', size),
        *_leaf_fields('observation', spec.observation, num_environments),
      ]
    )
    self._reply = array_codec.ArrayCodec(_leaf_fields('action', spec.action, num_environments))

  def hello(self, env_ids: np.ndarray, start: Start = FIRST_START) -> bytes:
    """Returns an actor's first message on a stream, which the server checks by `check_hello`."""
    said = {
      'protocol': PROTOCOL,
      'start': list(start),
      'env_ids': env_ids.tolist(),
      'spec': spec_json.encode(self.spec),
    }
    if self._settings is not None:
      said['settings'] = dict(self._settings)
    return json.dumps(said).encode()

  def max_message_bytes(self) -> int:
    """Returns the largest size of a hello or a request of such a group."""
    longest = np.full(self.num_environments, np.iinfo(np.int32).max)
    start = Start(1 << 62, 1 << 62)
    return max(len(self.hello(longest, start)), self._request.num_bytes)

  @staticmethod
  def check_hello(
    hello: bytes,
    spec: types.EnvironmentSpec | None,
    max_environments: int,
    settings: Mapping[str, str] | None = None,
  ) -> tuple[GroupCodec, frozenset[int], Start]:
    """Returns the server's codec for this actor, the actor's env_ids and its start.

    spec: specification of the environments that the server expects; None = accept the actor's.
    settings: in which the actor must agree with the learner; None = in none.
    Raises ValueError, naming the first difference, or the first few settings that differ."""
    said = _greeting(hello)
    if settings is not None and 'settings' not in said:
      raise ValueError(
        'the actor is of an earlier version of seed_acme: install the same everywhere'
      )
    if settings is not None and (found := differences(settings, said['settings'])):
      raise ValueError(f'{found}: start every node with the same configuration and cluster file')
    listed, start = said['env_ids'], said['start']
    if not _are_integers(listed) or not _are_integers(start) or len(start) != len(Start._fields):
      raise ValueError(_NO_GREETING)
    env_ids, theirs = frozenset(listed), said['spec']
    if not env_ids or min(env_ids) < 0 or max(env_ids) >= max_environments:
      raise ValueError(
        f'the group has env_ids {sorted(env_ids)[:4]} ...; they must lie in '
        f'0 ... {max_environments - 1}'
      )
    if len(env_ids) != len(listed):
      raise ValueError(f'the group has env_ids {listed[:4]} ...: one of them twice')
    if spec is None:
      spec = spec_json.decode_untrusted(theirs)
    elif difference := spec_json.difference(spec_json.encode(spec), theirs):
      raise ValueError(
        f"the actor's environment differs from the learner's (learner -> actor) in {difference}: "
        'both must build the same environment'
      )
    try:
      codec = GroupCodec(spec, len(env_ids))
    except OverflowError as error:
      raise ValueError('its environments have arrays that no memory holds') from error
    return codec, env_ids, Start(*start)

  def encode_request(self, request: types.ActorRequest) -> bytes:
    return self._request.encode(_request_arrays(request))

  def request_writer(self, header: bytes) -> RequestWriter:
    """Returns a writer of requests. header: bytes that the transport puts before each message."""
    return RequestWriter(self._request, header)

  @property
  def num_request_bytes(self) -> int:
    return self._request.num_bytes

  def decode_request(self, message: array_codec.Buffer) -> types.ActorRequest:
    number, run_ids, env_ids, step_type, reward, discount, score, *observation = (
      self._request.decode(message)
    )
    return types.ActorRequest(
      request_number=int(number),
      env_ids=env_ids,
      run_ids=run_ids,
      timestep=types.VectorTimeStep(
        step_type=step_type,
        reward=reward,
        discount=discount,
        score=score,
        observation=tree.unflatten_as(self.spec.observation, observation),
      ),
    )

  def encode_actions(self, actions: types.Nest) -> bytes:
    """Encodes a reply. It is a status word and then either the actions or the text of a refusal."""
    return _STATUS.type(_OK).tobytes() + self._reply.encode(tree.flatten(actions))

  def decode_reply(self, message: array_codec.Buffer) -> types.Nest:
    """Returns actions `[E, ...]`; raises `core.Refused` with the server's reason, or the
    subclass of `core.ChannelClosed` that the status means."""
    status = int(np.frombuffer(message, _STATUS, 1)[0])
    if status in _ENDS:
      raise _ENDS[status]
    if status != _OK:
      raise core.Refused(bytes(message[_STATUS.itemsize :]).decode())
    return tree.unflatten_as(self.spec.action, self._reply.decode(message[_STATUS.itemsize :]))


def _greeting(hello: bytes) -> dict[str, Any]:
  """Returns the content of a first message. All fields are present; their values are unchecked."""
  try:
    said = json.loads(hello)
  except (ValueError, RecursionError) as error:
    raise ValueError(_NO_GREETING) from error
  if not isinstance(said, dict) or not isinstance(said.get('protocol'), int):
    raise ValueError(_NO_GREETING)
  if said['protocol'] != PROTOCOL:
    raise ValueError(
      f'the actor speaks protocol {said["protocol"]}, the server {PROTOCOL}: '
      'install the same version of seed_acme on both'
    )
  if not {'start', 'env_ids', 'spec'} <= said.keys():
    raise ValueError(_NO_GREETING)
  if not isinstance(said.get('settings', {}), dict):
    raise ValueError(_NO_GREETING)
  return said


def differences(ours: Mapping[str, str], theirs: Mapping[str, Any]) -> str:
  """Returns in words in which settings a node differs from the learner; '' if in none.

  ours: the learner's, by name. theirs: the node's, which are unchecked.
  """
  found = [
    f"{name} is {theirs.get(name, 'absent')}, the learner's {ours.get(name, 'absent')}"
    for name in sorted(ours.keys() | theirs.keys())
    if theirs.get(name) != ours.get(name)
  ]
  more = len(found) - _MAX_DIFFERENCES
  return '; '.join(found[:_MAX_DIFFERENCES]) + (f'; and {more} more' if more > 0 else '')


def _are_integers(value: Any) -> bool:
  """Whether `value` is a list of 64-bit integers."""
  return isinstance(value, list) and all(
    type(x) is int and -_INTEGERS <= x < _INTEGERS for x in value
  )


def encode_refusal(text: str) -> bytes:
  """Encodes the reply that `GroupCodec.decode_reply` raises as `core.Refused`."""
  return _STATUS.type(_REFUSED).tobytes() + text.encode()


def encode_welcome(instance: str) -> bytes:
  """Encodes the answer to a greeting; `instance` distinguishes this server from its successors."""
  return _STATUS.type(_OK).tobytes() + instance.encode()


def decode_welcome(message: array_codec.Buffer) -> str:
  """Returns the server's instance name; raises `core.Refused` with the server's reason."""
  text = bytes(message[_STATUS.itemsize :]).decode()
  if int(np.frombuffer(message, _STATUS, 1)[0]) != _OK:
    raise core.Refused(text)
  return text


def encode_stopped() -> bytes:
  """Encodes the reply that ends an actor because the run is over."""
  return _STATUS.type(_STOPPED).tobytes()


def encode_paused() -> bytes:
  """Encodes the reply of a server that stops before the run is over."""
  return _STATUS.type(_PAUSED).tobytes()


def encode_taken() -> bytes:
  """Encodes the reply to an actor that a later start has replaced."""
  return _STATUS.type(_TAKEN).tobytes()
