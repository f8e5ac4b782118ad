"""All mutations, by area."""

from __future__ import annotations

from tests.mutations import envs
from tests.mutations import inference
from tests.mutations import learning
from tests.mutations import networks
from tests.mutations import on_policy
from tests.mutations import ops
from tests.mutations import penalties
from tests.mutations import programs
from tests.mutations import replay
from tests.mutations import replayed
from tests.mutations import sac
from tests.mutations import transport

_AREAS = (
  ops,
  on_policy,
  penalties,
  replayed,
  sac,
  inference,
  transport,
  replay,
  learning,
  envs,
  networks,
  programs,
)
MUTATIONS = tuple(mutation for area in _AREAS for mutation in area.MUTATIONS)
