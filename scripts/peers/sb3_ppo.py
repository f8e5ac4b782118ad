"""Stable-Baselines3's PPO, one process."""

from __future__ import annotations

import argparse
from typing import Any

from ale_py import registration
import catch_boards
import gymnasium
import numpy as np
import progress
from stable_baselines3 import PPO
from stable_baselines3.common import callbacks
from stable_baselines3.common import env_util
from stable_baselines3.common import vec_env

_ENDLESS = 10**12


class CatchVecEnv(vec_env.VecEnv):
  """Catch with the library's own interface for environments that are stepped together."""

  def __init__(self, num_environments: int):
    super().__init__(
      num_environments,
      gymnasium.spaces.Box(0, 1, (catch_boards.OBSERVATION_SIZE,), np.float32),
      gymnasium.spaces.Discrete(catch_boards.NUM_ACTIONS),
    )
    self._boards = catch_boards.CatchBoards(num_environments, seed=1)
    self._no_infos: list[dict[str, Any]] = [{} for _ in range(num_environments)]

  def reset(self) -> np.ndarray:
    return self._boards.reset()

  def step_async(self, actions: np.ndarray) -> None:
    self._actions = actions

  def step_wait(self) -> Any:
    observation, reward, is_done, last = self._boards.step(self._actions)
    infos = [{'terminal_observation': row} for row in last] if is_done[0] else self._no_infos
    return observation, reward, is_done, infos

  def close(self) -> None:
    """Does nothing, because there is nothing to free."""

  def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
    return [None] * self.num_envs

  def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
    raise NotImplementedError

  def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
    raise NotImplementedError

  def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
    return [False] * self.num_envs


class _Report(callbacks.BaseCallback):
  """A callback that reports steps when a rollout begins, after the previous one was trained."""

  def _on_rollout_start(self) -> None:
    progress.report(self.num_timesteps)

  def _on_step(self) -> bool:
    return True


def _make_algorithm(work: str) -> Any:
  if work == 'catch_mlp':
    environment = CatchVecEnv(512)
    settings = {'n_steps': 20, 'gamma': 0.99, 'ent_coef': 0.01, 'learning_rate': 1e-3}
    return PPO('MlpPolicy', environment, batch_size=512 * 20, n_epochs=1, device='cpu', **settings)
  if work == 'pong_cnn':
    registration.register_v0_v4_envs()  # gymnasium below 1.0 does not find them otherwise
    games = env_util.make_atari_env(
      'PongNoFrameskip-v4', n_envs=64, env_kwargs={'full_action_space': True}
    )
    return PPO(
      'CnnPolicy',
      vec_env.VecFrameStack(games, 4),
      n_steps=20,
      batch_size=32 * 20,
      n_epochs=1,
      ent_coef=0.01,
      learning_rate=1e-3,
      device='cpu',
    )
  robots = vec_env.VecNormalize(env_util.make_vec_env('HalfCheetah-v4', n_envs=8))
  return PPO(
    'MlpPolicy', robots, n_steps=256, batch_size=64, n_epochs=10, learning_rate=3e-4, device='cpu'
  )


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--work', required=True)
  parser.add_argument('--threads', type=int, required=True)
  arguments = parser.parse_args()
  progress.configure_torch(arguments.threads)
  _make_algorithm(arguments.work).learn(_ENDLESS, callback=_Report())


if __name__ == '__main__':
  main()
