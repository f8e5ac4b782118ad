"""The contents of the recorded messages. `python -m tests.earlier_runs.messages.content` records
the current ones, which is right only if the protocol changes, along with its number."""

from __future__ import annotations

import json
import pathlib

from dm_env import specs
import numpy as np

from seed_acme import types
from seed_acme.transport import joining
from seed_acme.transport import unix_protocol
from seed_acme.transport import wire

PATH = pathlib.Path(__file__).with_name('recorded.json')
SPEC = types.EnvironmentSpec(
  observation={
    'camera': specs.BoundedArray((2, 2), np.uint8, 0, 255, 'camera'),
    'clock': (specs.Array((1,), np.int64, 'clock'), specs.Array((), np.float16, 'phase')),
    'position': specs.Array((3,), np.float32, 'position'),
  },
  action={
    'button': specs.DiscreteArray(3, name='button'),
    'force': specs.BoundedArray((2,), np.float32, -1.0, 1.0, 'force'),
  },
  frames_per_step=4,
)
ENV_IDS = np.array([7, 8, 9], np.int32)
START = wire.Start(joined=1_700_000_000_123, number=2)
REQUEST = types.ActorRequest(
  request_number=2**40 + 3,
  env_ids=ENV_IDS,
  run_ids=np.array([2**61 + 1, 5, 2**33], np.int64),
  timestep=types.VectorTimeStep(
    step_type=np.array([types.FIRST, types.MID, types.LAST], np.uint8),
    reward=np.array([0.0, -1.5, 0.1], np.float32),
    discount=np.array([1.0, 1.0, 0.0], np.float32),
    observation={
      'camera': np.arange(12, dtype=np.uint8).reshape(3, 2, 2) * 20,
      'clock': (np.array([[1], [2**40], [-3]], np.int64), np.array([0.5, 1.5, -2.25], np.float16)),
      'position': np.arange(9, dtype=np.float32).reshape(3, 3) / 7,
    },
    score=np.array([0.0, -2.0, 3.25], np.float32),
  ),
)
ACTIONS = {
  'button': np.array([2, 0, 1], np.int32),
  'force': np.array([[0.5, -1.0], [0.1, 0.2], [1.0, 0.0]], np.float32),
}
TOKEN, INSTANCE, REFUSAL = 'a-token-of-the-run', '0123456789abcdef', 'environment 9 is not known'
NODE, SETTINGS = 'actor/1', {'seed': '7', 'environment.id': 'catch'}


def written() -> dict[str, bytes]:
  """Returns each message as the code writes it now."""
  codec = wire.GroupCodec(SPEC, ENV_IDS.size)
  hello = codec.hello(ENV_IDS, START)
  greeting = unix_protocol.greeting(TOKEN, hello)
  return {
    'hello': hello,
    'unix greeting': unix_protocol.header(len(greeting)) + greeting,
    'welcome': wire.encode_welcome(INSTANCE),
    'request': bytes(codec.encode_request(REQUEST)),
    'actions': bytes(codec.encode_actions(ACTIONS)),
    'refusal': wire.encode_refusal(REFUSAL),
    'stopped': wire.encode_stopped(),
    'paused': wire.encode_paused(),
    'taken': wire.encode_taken(),
    'join': of_version(joining.hello(NODE, SETTINGS), ''),
  }


def of_version(join: bytes, name: str) -> bytes:
  """Returns a node's greeting with another package version, which is not the protocol's."""
  return json.dumps({**json.loads(join), 'version': name}).encode()


def recorded() -> dict[str, bytes]:
  """Returns each message as it was recorded."""
  messages = json.loads(PATH.read_text(encoding='utf-8'))
  return {name: bytes.fromhex(text) for name, text in messages.items()}


def main() -> None:
  messages = {name: message.hex() for name, message in written().items()}
  PATH.write_text(json.dumps(messages, indent=1) + '\n', encoding='utf-8')


if __name__ == '__main__':
  main()
