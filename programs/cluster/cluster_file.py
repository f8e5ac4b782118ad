"""The cluster file: addresses of the nodes of a run that `seed-acme node` starts one by one.

```
{"learner": "10.0.0.1:8000",   where the others reach it; a list for several learner hosts
 "listen": "0.0.0.0:8000",     what it binds, if that differs
 "exchange": ["10.0.0.1:8002"] only for several learner hosts: where the others reach each
 "replay": "10.0.0.1:8001",    only if replay is a node of its own
 "actors": 2,                  their number, or their hosts: ["10.0.0.2", "10.0.0.3"]
 "admit": ["10.0.0.9"],        more hosts that may connect to Reverb and to the exchange
 "fence": false,               if something else keeps strangers out
 "token_file": "token"}        or "token", or "token_variable"
```
Imports neither TensorFlow, Reverb nor Launchpad.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import ipaddress
import json
import os
import pathlib
from typing import Any

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import addresses as addresses_lib
from seed_acme.checks import near_names

_KEYS = (
  'learner',
  'listen',
  'exchange',
  'replay',
  'actors',
  'admit',
  'fence',
  'token',
  'token_file',
  'token_variable',
)
_TOKEN_KEYS = _KEYS[-3:]
_MIN_TOKEN = 16  # characters
_MOST_ACTORS = 65_535  # the learner has no more ports
_NEW_TOKEN = 'make one with: openssl rand -hex 16'
# The default if neither file nor command line sets a time-out. Another host takes longer to start,
# or to restart, than another process of this host.
_CONNECT_TIMEOUT_S = 600.0


@dataclasses.dataclass(frozen=True)
class Cluster:
  """The contents of a cluster file.

  learners, exchange: `host:port` of each learner host. listen, replay: `host:port`. actors: the
    host of each actor, or '' if it is not given. admit: hosts that may connect to ports without a
    password, besides the nodes that need them.
  """

  path: str
  learners: tuple[str, ...]
  exchange: tuple[str, ...]  # () for one learner host
  listen: str
  replay: str | None
  actors: tuple[str, ...]
  token: str = dataclasses.field(repr=False)
  admit: tuple[str, ...] = ()
  has_fence: bool = True
  has_open_token: bool = False  # everybody on this host can read the file with the token

  @property
  def learner(self) -> str:
    """The address of the chief, or of the only learner host."""
    return self.learners[0]

  def admitted(self) -> tuple[str, ...] | None:
    """Returns the hosts as `fence.Fence` takes them. Actors have a token and need no entry."""
    if not self.has_fence:
      return None
    addresses = (*self.learners, *self.exchange, *((self.replay,) if self.replay else ()))
    nodes = [split(address)[0].strip('[]') for address in addresses]
    return tuple(dict.fromkeys([*nodes, *self.admit]))

  def listen_of(self, index: int) -> str:
    """Returns the address that learner host `index` binds; each host has its own port."""
    if len(self.learners) == 1:
      return self.listen
    own = self.learners[index]
    return own if self.listen == self.learner else f'{split(self.listen)[0]}:{split(own)[1]}'


def load(path: str) -> Cluster:
  """Reads and checks the file; raises `UserError` with the key and the fix."""
  try:
    value = json.loads(pathlib.Path(path).read_text(encoding='utf-8'))
  except OSError as error:
    raise types.UserError(
      f'cannot read the cluster file {path}: {error.strerror or error}; give '
      'its path with --cluster'
    ) from None
  except ValueError as error:
    raise types.UserError(f'the cluster file {path} is not readable as JSON ({error})') from None
  try:
    return _parse(path, value)
  except types.UserError as error:
    raise types.UserError(f'cluster file {path}: {error}') from None


def _parse(path: str, value: Any) -> Cluster:
  if not isinstance(value, dict):
    raise types.UserError(f'it holds {_short(value)}, no object with the keys {", ".join(_KEYS)}')
  _check_keys(value)
  learners = _addresses(value, 'learner')
  if not learners:
    raise types.UserError('it lacks "learner": "HOST:PORT", where actors reach the learner')
  exchange = _addresses(value, 'exchange')
  if len(exchange) != (len(learners) if len(learners) > 1 else 0):
    raise types.UserError(
      f'"exchange" has {len(exchange)} addresses: give one for each of several learner hosts, at a '
      f'port of its own ({len(learners)} learner hosts), and none for one'
    )
  _refuse_repeated([*learners, *exchange, *_addresses(value, 'replay')])
  token, token_path = _token(value, pathlib.Path(path).parent)
  secret = pathlib.Path(path) if 'token' in value else token_path
  return Cluster(
    path=path,
    learners=learners,
    exchange=exchange,
    listen=_address(value, 'listen') or learners[0],
    replay=_address(value, 'replay'),
    actors=_actors(value),
    token=token,
    admit=_admit(value),
    has_fence=_has_fence(value),
    has_open_token=secret is not None and bool(secret.stat().st_mode & 0o004),
  )


def _refuse_repeated(given: Sequence[str]) -> None:
  repeated = [address for address in given if given.count(address) > 1]
  if repeated:
    raise types.UserError(
      f'{repeated[0]} is given {given.count(repeated[0])} times: give "learner", "exchange" and '
      '"replay" a port of its own each'
    )


def _check_keys(value: Mapping[str, Any]) -> None:
  for key in value:
    if key not in _KEYS:
      raise types.UserError(
        f'unknown key {key!r}{near_names.hint(key, _KEYS)}; known: {", ".join(_KEYS)}'
      )


def _addresses(value: Mapping[str, Any], key: str) -> tuple[str, ...]:
  """Returns the addresses under a key, which may hold one address or a list."""
  given = value.get(key)
  listed = given if isinstance(given, list) else [] if given is None else [given]
  return tuple(_parsed(address, key) for address in listed)


def _address(value: Mapping[str, Any], key: str) -> str | None:
  return None if value.get(key) is None else _parsed(value[key], key)


def _parsed(address: Any, key: str) -> str:
  if not isinstance(address, str):
    raise types.UserError(f'{key} is {_short(address)}: write it as "HOST:PORT"')
  try:
    host, port = addresses_lib.parse(address)
  except types.UserError as error:
    raise types.UserError(f'{key}: {error}') from None
  return f'[{host}]:{port}' if ':' in host else f'{host}:{port}'


def _actors(value: Mapping[str, Any]) -> tuple[str, ...]:
  actors = value.get('actors')
  if type(actors) is int and 1 <= actors <= _MOST_ACTORS:
    return ('',) * actors
  if isinstance(actors, list) and actors and all(isinstance(a, str) and a for a in actors):
    return tuple(actors)
  raise types.UserError(
    f'actors is {_short(actors)}: give their number, 1 to {_MOST_ACTORS}, or the list of their '
    'hosts'
  )


def _admit(value: Mapping[str, Any]) -> tuple[str, ...]:
  given = value.get('admit', [])
  if not isinstance(given, list) or not all(isinstance(one, str) and one for one in given):
    raise types.UserError(f'admit is {_short(given)}: give a list of hosts, names or addresses')
  for one in given:
    is_address = is_ip_address(one.strip('[]'))
    if not is_address and not set(':/ ').isdisjoint(one):
      raise types.UserError(f'admit has {_short(one)}: write a host alone, without a port')
  return tuple(one.strip('[]') for one in given)


def is_ip_address(text: str) -> bool:
  """Whether `text` is an IP address and not a host name."""
  try:
    ipaddress.ip_address(text)
  except ValueError:
    return False
  return True


def _has_fence(value: Mapping[str, Any]) -> bool:
  given = value.get('fence', True)
  if not isinstance(given, bool):
    raise types.UserError(f'fence is {_short(given)}: write true or false')
  if value.get('admit') and not given:
    raise types.UserError('"admit" says who may pass a fence, and "fence" is false: leave one out')
  return given


def _token(value: Mapping[str, Any], folder: pathlib.Path) -> tuple[str, pathlib.Path | None]:
  """Returns the token, and the separate file it was read from, if any."""
  given = [key for key in _TOKEN_KEYS if key in value]
  if len(given) != 1:
    raise types.UserError(
      f'give exactly one of {", ".join(_TOKEN_KEYS)} (it has '
      f'{", ".join(given) or "none"}); {_NEW_TOKEN}'
    )
  key, source = given[0], value[given[0]]
  if not isinstance(source, str) or not source:
    raise types.UserError(f'{key} must be a text that is not empty')
  if key == 'token':
    return _checked(source, 'token'), None
  if key == 'token_variable':
    if source not in os.environ:
      raise types.UserError(f'the environment variable {source} (token_variable) is not set')
    return _checked(os.environ[source], f'the token in {source}'), None
  return _token_in(folder / source), folder / source


def _token_in(path: pathlib.Path) -> str:
  try:
    return _checked(path.read_text(encoding='utf-8').strip(), f'the token in {path}')
  except (OSError, ValueError) as error:  # such as a NUL in the path
    reason = getattr(error, 'strerror', None)
    reason = reason or ('it is no text' if isinstance(error, UnicodeError) else str(error))
    raise types.UserError(f'cannot read token_file {str(path)!r}: {reason}') from None


def _checked(token: str, where: str) -> str:
  """Checks the length and characters of a token. The error message never shows the token."""
  if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or ' ' in token:
    raise types.UserError(
      f'{where} has to be {_MIN_TOKEN} or more ASCII characters without spaces; {_NEW_TOKEN}'
    )
  return token


def _short(value: Any) -> str:
  text = 'missing' if value is None else json.dumps(value)
  return text if len(text) <= 40 else text[:37] + '...'


def with_cluster(
  config: config_lib.ExperimentConfig,
  overridden: Collection[str],
  cluster: Cluster,
  role: str,
  index: int = 0,
) -> config_lib.ExperimentConfig:
  """Returns the configuration of a node, with addresses and numbers of nodes from the cluster file.

  overridden: fields that the command line sets. index: of a learner host. Raises `UserError` if one
    of them contradicts the file.
  """
  refuse_courier(config)
  numbers = {'num_actors': ('actors', cluster.actors)}
  numbers['num_learner_hosts'] = ('learner', cluster.learners)
  for field, (key, there) in numbers.items():
    if field in overridden and getattr(config, field) != len(there):
      raise types.UserError(
        f'--config.{field}={getattr(config, field)} contradicts cluster file {cluster.path}, '
        f'which has {len(there)}: change "{key}" there, on every host'
      )
  if {'transport.host', 'transport.port'}.intersection(overridden):
    raise types.UserError(
      '--config.transport.host and port are given by the cluster file '
      f'{cluster.path}: change "learner" or "listen" there'
    )
  if cluster.replay is not None and 'replay.port' in overridden:
    raise types.UserError(
      f'--config.replay.port is given by the cluster file {cluster.path}: change "replay" there'
    )
  is_apart = cluster.replay is not None
  if not is_apart and config.replay.separate_process:
    raise types.UserError(
      'replay.separate_process needs the address of the replay node: add '
      f'"replay": "HOST:PORT" to the cluster file {cluster.path}'
    )
  host, port = split(cluster.listen_of(index) if role == 'learner' else cluster.learner)
  replay_port = config.replay.port
  if cluster.replay is not None:
    replay_port = split(cluster.replay)[1] if role == 'replay' else 0
  config = dataclasses.replace(
    config,
    num_actors=len(cluster.actors),
    num_learner_hosts=len(cluster.learners),
    replay=dataclasses.replace(config.replay, separate_process=is_apart, port=replay_port),
  )
  return between_hosts(config, host, port, 'actor.connect_timeout_s' not in overridden)


def refuse_courier(config: config_lib.ExperimentConfig) -> None:
  """Raises `UserError` for the transport that must not be reached from another host."""
  if config.transport.kind == 'courier':
    raise types.UserError(
      f'transport.kind={config.transport.kind} cannot be used between hosts: whoever may '
      "call can run code, so it listens on the learner's own machine alone; use "
      '--config.transport.kind=grpc'
    )


def between_hosts(
  config: config_lib.ExperimentConfig, host: str, port: int, waits_longer: bool = True
) -> config_lib.ExperimentConfig:
  """Returns the configuration of nodes on separate hosts. Raises `UserError`.

  host, port: of the learner. waits_longer: unless the configuration sets a time-out, actors wait
    for the learner as long as a host may take to start.
  """
  refuse_courier(config)
  replace = dataclasses.replace
  actor = config.actor
  if waits_longer and actor.connect_timeout_s == config_lib.ActorConfig().connect_timeout_s:
    actor = replace(actor, connect_timeout_s=_CONNECT_TIMEOUT_S)
  # Reverb writes to the disk of its own host, where the (chief) learner cannot read it.
  is_elsewhere = config.replay.separate_process or config.num_learner_hosts > 1
  saves_replay = config.checkpoint.replay and not is_elsewhere
  return replace(
    config,
    transport=replace(config.transport, host=host, port=port),
    actor=actor,
    checkpoint=replace(config.checkpoint, replay=saves_replay),
  )


def split(address: str) -> tuple[str, int]:
  """Splits `host:port`; an IPv6 address keeps its brackets."""
  host, _, port = address.rpartition(':')
  return host, int(port)
