"""TorchRL's inference server: processes of environments, one process that answers, no training.

Each process of environments holds one vector of them ("batch-locked") and one slot of memory that
it shares with the server, which is the layout that TorchRL's `transport='auto'` makes.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

import acting_boards
import progress
from tensordict import TensorDict
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
import torch
from torch import nn
import torch_networks
from torchrl.collectors import AsyncBatchedCollector
from torchrl.data import Binary
from torchrl.data import Categorical
from torchrl.data import Composite
from torchrl.data import Unbounded
from torchrl.envs import EnvBase

_UNROLL_STEPS = 20
# work -> processes of environments, environments in each, network
WORKS = {
  'acting_catch': (1, 512, 'catch_mlp'),
  'acting_catch_2': (2, 256, 'catch_mlp'),
  'acting_frames_2': (2, 16, 'pong_cnn'),
}


class Vector(EnvBase):
  """A vector of environments whose episodes end together."""

  def __init__(self, work: str, num_environments: int, seed: int):
    super().__init__(device='cpu', batch_size=torch.Size([num_environments]))
    self._boards = acting_boards.make(work, num_environments, seed)
    size = self.batch_size
    observation = self._boards.spec.observation
    dtype = torch.uint8 if observation.dtype == 'uint8' else torch.float32
    self.observation_spec = Composite(
      observation=Unbounded(shape=(*size, *observation.shape), dtype=dtype), shape=size
    )
    self.action_spec = Categorical(self._boards.spec.action.num_values, shape=size)
    self.reward_spec = Unbounded(shape=(*size, 1))
    ends = lambda: Binary(n=1, shape=(*size, 1), dtype=torch.bool)
    self.done_spec = Composite(done=ends(), terminated=ends(), truncated=ends(), shape=size)

  def _reset(self, tensordict: TensorDictBase | None = None, **kwargs: Any) -> TensorDictBase:
    observation = torch.from_numpy(self._boards.reset().observation)
    return TensorDict({'observation': observation}, self.batch_size)

  def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
    row = self._boards.step(tensordict['action'].numpy())
    terminated = torch.from_numpy(row.discount == 0.0).unsqueeze(-1)
    return TensorDict(
      {
        'observation': torch.from_numpy(row.observation),
        'reward': torch.from_numpy(row.reward.copy()).unsqueeze(-1),
        'done': terminated,
        'terminated': terminated,
      },
      self.batch_size,
    )

  def _set_seed(self, seed: int | None) -> None:
    """The boards have theirs already."""


class Acting(nn.Module):
  """A network of `torch_networks`, with what an unroll stores of it."""

  def __init__(self, name: str):
    super().__init__()
    self._network = torch_networks.MAKERS[name]()
    # Slots of one vector each arrive as `[processes, E, ...]`.
    self._rank = 1 if name == 'catch_mlp' else 3

  def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`[..., E, *observation]` -> actions, logits and values `[..., E]`."""
    leading = observation.shape[: observation.dim() - self._rank]
    rows = observation.reshape(-1, *observation.shape[-self._rank :])
    policy, values, _ = self._network(rows, None, None)
    split = lambda x: x.reshape(*leading, *x.shape[1:])
    return split(policy.sample()), split(policy.logits), split(values)


def make_policy(name: str, threads: int) -> TensorDictModule:
  """Makes the policy, in the server's process and once here."""
  torch.set_num_threads(threads)
  return TensorDictModule(
    Acting(name), in_keys=['observation'], out_keys=['action', 'logits', 'value']
  )


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--work', choices=sorted(WORKS), required=True)
  parser.add_argument('--threads', type=int, required=True)
  arguments = parser.parse_args()
  progress.configure_torch(arguments.threads)
  num_processes, num_environments, network = WORKS[arguments.work]
  collector = AsyncBatchedCollector(
    [
      functools.partial(Vector, arguments.work, num_environments, seed)
      for seed in range(num_processes)
    ],
    policy_factory=functools.partial(make_policy, network, arguments.threads),
    frames_per_batch=_UNROLL_STEPS * num_processes * num_environments,
    total_frames=-1,
    env_backend='multiprocessing',
    transport='auto',
    # By default a message holds `frames_per_batch / processes` steps of a whole vector: 10,240 of
    # 512 environments in `acting_catch`.
    transition_chunk_size=_UNROLL_STEPS,
  )
  steps = 0
  for batch in collector:
    steps += batch.numel()
    progress.report(steps)


if __name__ == '__main__':
  main()
