"""PufferLib's trainer on Catch, one process: its native interface with 512 agents, Adam."""

from __future__ import annotations

import argparse
from typing import Any

import catch_boards
import gymnasium
import numpy as np
import progress
import pufferlib
from pufferlib import pufferl
from pufferlib import pytorch as puffer_pytorch
import torch
from torch import nn

_NUM_ENVIRONMENTS, _NUM_STEPS = 512, 20
_SETTINGS = {
  'seed': 1,
  'torch_deterministic': True,
  'cpu_offload': False,
  'device': 'cpu',
  'optimizer': 'adam',
  'anneal_lr': False,
  'precision': 'float32',
  'total_timesteps': 10**12,
  'learning_rate': 1e-3,
  'gamma': 0.99,
  'gae_lambda': 0.95,
  'update_epochs': 1,
  'clip_coef': 0.2,
  'vf_coef': 0.5,
  'vf_clip_coef': 0.2,
  'max_grad_norm': 0.5,
  'ent_coef': 0.01,
  'adam_beta1': 0.9,
  'adam_beta2': 0.999,
  'adam_eps': 1e-5,
  'batch_size': 'auto',
  'bptt_horizon': _NUM_STEPS,
  'minibatch_size': _NUM_ENVIRONMENTS * _NUM_STEPS,
  'max_minibatch_size': _NUM_ENVIRONMENTS * _NUM_STEPS,
  'checkpoint_interval': 10**9,
  'compile': False,
  'vtrace_rho_clip': 1.0,
  'vtrace_c_clip': 1.0,
  'prio_alpha': 0.8,
  'prio_beta0': 0.2,
  'use_rnn': False,
  'env': 'catch',
  'name': 'catch',
  'project': 'catch',
  'data_dir': '/nonexistent',  # no checkpoint is saved
}


class CatchAgents(pufferlib.PufferEnv):
  """Catch as a native environment, which writes into the buffers that the library provides."""

  def __init__(self, num_agents: int):
    self.single_observation_space = gymnasium.spaces.Box(
      0, 1, (catch_boards.OBSERVATION_SIZE,), np.float32
    )
    self.single_action_space = gymnasium.spaces.Discrete(catch_boards.NUM_ACTIONS)
    self.num_agents = num_agents
    super().__init__()
    self._boards = catch_boards.CatchBoards(num_agents, seed=1)
    self.agents_per_batch = num_agents

  def reset(self, seed: int | None = None) -> Any:
    self.observations[:] = self._boards.reset()
    return self.observations, []

  def step(self, actions: np.ndarray) -> Any:
    self.observations[:], self.rewards[:], self.terminals[:], _ = self._boards.step(actions)
    return self.observations, self.rewards, self.terminals, self.truncations, []

  def close(self) -> None:
    """Does nothing, because there is nothing to free."""


class Policy(nn.Module):
  """MLP 64-64 with two heads, initialised by the library's function."""

  def __init__(self) -> None:
    super().__init__()
    layer = puffer_pytorch.layer_init
    self.torso = nn.Sequential(
      layer(nn.Linear(catch_boards.OBSERVATION_SIZE, 64)),
      nn.ReLU(),
      layer(nn.Linear(64, 64)),
      nn.ReLU(),
    )
    self.policy = layer(nn.Linear(64, catch_boards.NUM_ACTIONS), std=0.01)
    self.value = layer(nn.Linear(64, 1), std=1)

  def forward_eval(self, observations: torch.Tensor, state: Any = None) -> Any:
    hidden = self.torso(observations)
    return self.policy(hidden), self.value(hidden)

  def forward(self, observations: torch.Tensor, state: Any = None) -> Any:
    return self.forward_eval(observations, state)


class Trainer(pufferl.PuffeRL):
  """A trainer without the dashboard on the terminal, which costs CPU time."""

  def print_dashboard(self, *args: Any, **kwargs: Any) -> None:
    """Prints nothing."""


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--work', choices=('catch_mlp',), required=True)
  parser.add_argument('--threads', type=int, required=True)
  progress.configure_torch(parser.parse_args().threads)
  trainer = Trainer(_SETTINGS, CatchAgents(_NUM_ENVIRONMENTS), Policy())
  while True:
    trainer.evaluate()
    trainer.train()
    progress.report(trainer.global_step)


if __name__ == '__main__':
  main()
