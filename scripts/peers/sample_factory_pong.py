"""Sample Factory's APPO on Pong with its own example's settings, 64 environments in workers."""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

from ale_py import registration
import progress
from sample_factory.algo.runners import runner as runner_lib
from sample_factory.envs import env_utils
from sample_factory.train import make_runner
from sf_examples.atari import atari_utils
from sf_examples.atari import train_atari

_FRAMES_PER_STEP = 4
_POLICY = 0


class _Report(runner_lib.AlgoObserver):
  """An observer that reports the steps that the learner has trained, which it counts in frames."""

  def on_training_step(
    self, runner: runner_lib.Runner, training_iteration_since_resume: int
  ) -> None:
    progress.report(runner.env_steps.get(_POLICY, 0) // _FRAMES_PER_STEP)


def _make_game(*args: Any, **kwargs: Any) -> Any:
  """Makes the example's own environment, in a worker."""
  registration.register_v0_v4_envs()  # gymnasium below 1.0 does not find them otherwise
  return atari_utils.make_atari_env(*args, **kwargs)


def main() -> None:
  parser = argparse.ArgumentParser()
  parser.add_argument('--work', choices=('pong_cnn',), required=True)
  parser.add_argument('--threads', type=int, required=True, help='here: rollout workers')
  arguments = parser.parse_args()
  env_utils.register_env('atari_pong', _make_game)
  with tempfile.TemporaryDirectory() as folder:
    configuration = train_atari.parse_atari_args(
      [
        '--env=atari_pong',
        '--device=cpu',
        f'--train_dir={folder}',
        f'--num_workers={arguments.threads}',
        f'--num_envs_per_worker={64 // arguments.threads}',
        '--worker_num_splits=2',
        '--rollout=20',
        '--recurrence=1',
        '--use_rnn=False',
        '--decorrelate_envs_on_one_worker=False',  # it would take minutes
        '--batch_size=640',
        '--num_batches_per_epoch=2',  # all rows of one rollout
        '--num_epochs=1',
        '--learning_rate=0.001',
        '--train_for_env_steps=1000000000000',
      ]
    )
    configuration, runner = make_runner(configuration)
    runner.register_observer(_Report())
    if runner.init() == 0:
      runner.run()


if __name__ == '__main__':
  main()
