"""Networks of `torch_ppo.py`: `network(observation, state, is_first)` -> policy, value, state."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn


def _linear(inputs: int, outputs: int, gain: float = math.sqrt(2.0)) -> nn.Linear:
  layer = nn.Linear(inputs, outputs)
  nn.init.orthogonal_(layer.weight, gain)
  nn.init.zeros_(layer.bias)
  return layer


def _mlp(inputs: int, activation: type[nn.Module]) -> nn.Sequential:
  return nn.Sequential(_linear(inputs, 64), activation(), _linear(64, 64), activation())


class CatchMlp(nn.Module):
  """MLP 64-64 with two heads."""

  def __init__(self) -> None:
    super().__init__()
    self.torso = _mlp(50, nn.ReLU)
    self.policy, self.value = _linear(64, 3, 0.01), _linear(64, 1, 1.0)

  def forward(self, observation: torch.Tensor, state: Any, is_first: torch.Tensor) -> Any:
    hidden = self.torso(observation)
    policy = torch.distributions.Categorical(logits=self.policy(hidden), validate_args=False)
    return policy, self.value(hidden).squeeze(-1), state


class CatchLstm(nn.Module):
  """MLP 64-64 and LSTM 128; `observation` may hold many steps, time-major and flattened."""

  def __init__(self) -> None:
    super().__init__()
    self.torso = _mlp(50, nn.ReLU)
    self.core = nn.LSTM(64, 128)
    self.policy, self.value = _linear(128, 3, 0.01), _linear(128, 1, 1.0)

  def forward(self, observation: torch.Tensor, state: Any, is_first: torch.Tensor) -> Any:
    number = state[0].shape[1]
    rows = self.torso(observation).reshape(-1, number, 64)
    outputs = []
    for row, first in zip(rows, is_first.reshape(-1, number), strict=True):
      keep = (1.0 - first).reshape(1, -1, 1)
      output, state = self.core(row.unsqueeze(0), (keep * state[0], keep * state[1]))
      outputs.append(output)
    hidden = torch.cat(outputs).flatten(0, 1)
    policy = torch.distributions.Categorical(logits=self.policy(hidden), validate_args=False)
    return policy, self.value(hidden).squeeze(-1), state


class PongCnn(nn.Module):
  """Nature CNN, 512 units, two heads."""

  def __init__(self) -> None:
    super().__init__()
    convolutions = [nn.Conv2d(4, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3, 1)]
    layers = [part for layer in convolutions for part in (layer, nn.ReLU())]
    self.torso = nn.Sequential(*layers, nn.Flatten(), _linear(3136, 512), nn.ReLU())
    self.policy, self.value = _linear(512, 18, 0.01), _linear(512, 1, 1.0)

  def forward(self, observation: torch.Tensor, state: Any, is_first: torch.Tensor) -> Any:
    hidden = self.torso(observation.float() / 255.0)
    policy = torch.distributions.Categorical(logits=self.policy(hidden), validate_args=False)
    return policy, self.value(hidden).squeeze(-1), state


class Cheetah(nn.Module):
  """Two 64-64 tanh networks, and a Gaussian policy with a state-independent deviation."""

  def __init__(self) -> None:
    super().__init__()
    self.policy = nn.Sequential(_mlp(17, nn.Tanh), _linear(64, 6, 0.01))
    self.value = nn.Sequential(_mlp(17, nn.Tanh), _linear(64, 1, 1.0))
    self.log_std = nn.Parameter(torch.zeros(6))

  def forward(self, observation: torch.Tensor, state: Any, is_first: torch.Tensor) -> Any:
    mean = self.policy(observation)
    normal = torch.distributions.Normal(mean, self.log_std.exp(), validate_args=False)
    policy = torch.distributions.Independent(normal, 1, validate_args=False)
    return policy, self.value(observation).squeeze(-1), state


MAKERS = {
  'catch_mlp': CatchMlp,
  'catch_lstm': CatchLstm,
  'pong_cnn': PongCnn,
  'halfcheetah_ppo': Cheetah,
}


def initial_state(work: str, num_environments: int) -> Any:
  """Returns hidden and cell state, or None."""
  if work != 'catch_lstm':
    return None
  return torch.zeros(1, num_environments, 128), torch.zeros(1, num_environments, 128)
