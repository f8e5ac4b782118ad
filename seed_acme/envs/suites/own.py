"""seed_acme's own environments: small tasks, natively vectorised, with nothing to install."""

from __future__ import annotations

from collections.abc import Callable

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import action_scaling
from seed_acme.envs import bit_flip
from seed_acme.envs import catch
from seed_acme.envs import memory_chain
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import suite
from seed_acme.envs import toy

_NOT_SETTINGS = ('num_environments', 'seed')


def _suite(
  name: str,
  make: Callable[..., core.VectorEnvironment],
  description: str,
  *,
  has_float_actions: bool = False,
) -> suite.Suite:
  def make_all(order: suite.Order) -> core.VectorEnvironment:
    actions, settings = action_scaling.split(name, order.settings)
    own = make(order.num_environments, order.seed, **settings)
    # Float actions are already within [-1, 1], and the environments check them.
    return action_scaling.wrap(own, actions, name) if actions.action_bins else own

  def check(config: config_lib.EnvironmentConfig) -> None:
    also: tuple[str, ...] = ()
    settings = config.settings
    if has_float_actions:
      also = action_scaling.NAMES
      _, settings = action_scaling.split(name, settings)
    settings_lib.check(config, make, skip=_NOT_SETTINGS, also=also)
    make(num_environments=1, seed=0, **settings).close()  # cheap, and checks the values

  return suite.Suite(
    id=name,
    description=description,
    settings=(
      *settings_lib.names(make, _NOT_SETTINGS),
      *(action_scaling.NAMES if has_float_actions else ()),
    ),
    matches=name.__eq__,
    make=make_all,
    check=check,
    names=lambda: [name],
    examples=(suite.Example(name),) if name == 'catch' else (),  # one is enough for all
    scales_actions=False,  # done above
  )


SUITES = (
  _suite(
    'bit_flip',
    bit_flip.BitFlip,
    'flip bits until they are those of a goal; observations with goals',
  ),
  _suite('catch', catch.Catch, 'move a paddle under a falling ball'),
  _suite(
    'memory_chain',
    memory_chain.MemoryChain,
    'repeat at the end of the episode what was shown at its start',
  ),
  _suite(
    'toy', toy.Toy, 'answer with the vector shown; continuous actions', has_float_actions=True
  ),
  _suite(
    'toy_memory',
    toy.ToyMemory,
    'answer with the vector shown some rows ago; continuous actions',
    has_float_actions=True,
  ),
)
