"""What a launch cannot do, though the layout of the run is right."""

from __future__ import annotations

from seed_acme import layout as layout_lib
from seed_acme import types


def check(layout: layout_lib.Layout, how: str) -> None:
  """Raises `types.UserError`, naming value and fix.

  how: the run is started, as the user said it. On this machine only `local_mp` starts several
  learner hosts.
  """
  if how == 'vertex_ai':
    check_elsewhere(layout)
  elif layout.is_shared and how not in ('local_mp', 'auto'):
    raise types.UserError(
      f'num_learner_hosts ({len(layout.learners)}) needs --launch=local_mp, where each host is '
      f'a process; with {how} set it to 1'
    )


def check_elsewhere(layout: layout_lib.Layout) -> None:
  """Raises `types.UserError` where replay nodes would be on other machines: there is one at most.
  Shards within the learner can be anywhere."""
  if layout.has_replay_nodes and layout.is_sharded:
    raise types.UserError(
      f'replay.num_shards ({len(layout.learners[0].shards)}) with replay.separate_process needs '
      '--launch=local_mp, where each shard is a process of this machine: set one of them back, to '
      '1 or to False'
    )
