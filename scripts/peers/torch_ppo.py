"""PPO in PyTorch, structured like CleanRL's files: one process, one loop, storage in tensors."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np
import progress
import torch
from torch import nn
import torch_environments
import torch_networks

_LAMBDA, _CLIP, _MAX_NORM = 0.95, 0.2, 0.5


@dataclasses.dataclass(frozen=True)
class Settings:
  """The settings of a work. minibatch_size: rows, or 0 = the whole rollout."""

  num_environments: int
  num_steps: int
  minibatch_size: int
  num_epochs: int
  learning_rate: float
  entropy: float
  discount: float = 0.99


SETTINGS = {
  'catch_mlp': Settings(512, 20, 0, 1, 1e-3, 0.01),
  'catch_lstm': Settings(512, 20, 0, 1, 1e-3, 0.01),
  'pong_cnn': Settings(64, 20, 640, 1, 1e-3, 0.01),
  'halfcheetah_ppo': Settings(8, 256, 64, 10, 3e-4, 0.0),
}


class Rollout:
  """`[T, E, ...]` tensors that every rollout overwrites, and the next one's first inputs."""

  def __init__(self, work: str, environments: Any, settings: Settings, network: nn.Module):
    self._environments, self._settings, self._network = environments, settings, network
    size = (settings.num_steps, settings.num_environments)
    self._next = torch.as_tensor(environments.reset())
    self._next_is_first = torch.zeros(size[1])
    self.state = torch_networks.initial_state(work, size[1])
    self.observations = torch.zeros(size + self._next.shape[1:], dtype=self._next.dtype)
    self.actions: torch.Tensor | None = None
    self.log_probs, self.rewards, self.is_first, self.values = (torch.zeros(size) for _ in range(4))

  def collect(self) -> int:
    """Fills the storage; returns the number of agent steps in it."""
    steps = 0
    self.first_state = self.state
    for t in range(self._settings.num_steps):
      self.observations[t], self.is_first[t] = self._next, self._next_is_first
      with torch.no_grad():
        policy, self.values[t], self.state = self._network(
          self._next, self.state, self._next_is_first
        )
        action = policy.sample()
        self.log_probs[t] = policy.log_prob(action)
      if self.actions is None:
        self.actions = torch.zeros((self._settings.num_steps, *action.shape), dtype=action.dtype)
      self.actions[t] = action
      observation, reward, is_done = self._environments.step(action.numpy())
      steps += len(is_done)
      if self._environments.has_reset_steps:  # the reset step of an episode took no action
        steps -= int(self._next_is_first.sum())
      self.rewards[t] = torch.tensor(reward, dtype=torch.float32)
      self._next = torch.as_tensor(observation)
      self._next_is_first = torch.as_tensor(is_done.astype(np.float32))
    return steps

  def advantages(self) -> torch.Tensor:
    """Returns generalized advantage estimates, `[T, E]`."""
    with torch.no_grad():
      _, value, _ = self._network(self._next, self.state, self._next_is_first)
      result, last = torch.zeros_like(self.rewards), torch.zeros_like(value)
      is_first = self._next_is_first
      for t in reversed(range(self._settings.num_steps)):
        keep = 1.0 - is_first
        delta = self.rewards[t] + self._settings.discount * value * keep - self.values[t]
        last = delta + self._settings.discount * _LAMBDA * keep * last
        result[t], value, is_first = last, self.values[t], self.is_first[t]
    return result


def _update(
  rollout: Rollout, settings: Settings, network: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
  assert rollout.actions is not None
  advantages = rollout.advantages()
  flat = lambda x: x.flatten(0, 1)
  observations, actions, log_probs, is_first = map(
    flat, (rollout.observations, rollout.actions, rollout.log_probs, rollout.is_first)
  )
  returns, advantages = flat(advantages + rollout.values), flat(advantages)
  number = len(returns)
  for _ in range(settings.num_epochs):
    order = torch.randperm(number) if settings.minibatch_size else None
    for start in range(0, number, settings.minibatch_size or number):
      rows = slice(None) if order is None else order[start : start + settings.minibatch_size]
      policy, values, _ = network(observations[rows], rollout.first_state, is_first[rows])
      ratio = (policy.log_prob(actions[rows]) - log_probs[rows]).exp()
      scaled = advantages[rows]
      scaled = (scaled - scaled.mean()) / (scaled.std() + 1e-8)
      surrogate = torch.minimum(ratio * scaled, ratio.clamp(1 - _CLIP, 1 + _CLIP) * scaled)
      value_loss = 0.5 * (values - returns[rows]).square().mean()
      loss = 0.5 * value_loss - surrogate.mean()
      if settings.entropy:
        loss = loss - settings.entropy * policy.entropy().mean()
      optimizer.zero_grad()
      loss.backward()
      nn.utils.clip_grad_norm_(network.parameters(), _MAX_NORM)
      optimizer.step()


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--work', choices=sorted(SETTINGS), required=True)
  parser.add_argument('--environments', choices=('own', 'envpool'), required=True)
  parser.add_argument('--threads', type=int, required=True)
  arguments = parser.parse_args()
  progress.configure_torch(arguments.threads)
  settings = SETTINGS[arguments.work]
  environments = torch_environments.make(arguments.work, arguments.environments, arguments.threads)
  network = torch_networks.MAKERS[arguments.work]()
  optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, eps=1e-5)
  rollout = Rollout(arguments.work, environments, settings, network)
  steps = 0
  while True:
    steps += rollout.collect()
    _update(rollout, settings, network, optimizer)
    progress.report(steps)


if __name__ == '__main__':
  main()
