"""The contenders of `compare.py` for each work: configurations of ours, and commands of peers."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Ours:
  """A configuration of ours, by name or a file of this folder. launch: as for `bench --launch`.

  extra: of this project, that it needs besides those of `make setup`; also the package's name.
  """

  name: str
  config: str
  launch: str
  extra: str = ''


@dataclasses.dataclass(frozen=True)
class Peer:
  """A script of this folder. packages: whose versions are reported with its figures."""

  name: str
  script: str
  arguments: tuple[str, ...]
  packages: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Work:
  """A workload. num_environments: for each contender. peers: tried with 1 and 2 threads each."""

  num_environments: int
  equal: str
  ours: tuple[Ours, ...]
  peers: tuple[Peer, ...]


def _ours(config: str) -> tuple[Ours, ...]:
  return (
    Ours('seed_acme', config, 'local_mp'),
    Ours('seed_acme, one process', config, 'single_process'),
  )


def _torch(environments: str) -> Peer:
  name = 'CleanRL-style' if environments == 'own' else 'CleanRL-style, envpool'
  packages = ('torch',) if environments == 'own' else ('torch', 'envpool')
  return Peer(name, 'torch_ppo.py', ('--environments', environments), packages)


_SB3 = Peer('Stable-Baselines3 PPO', 'sb3_ppo.py', (), ('stable-baselines3', 'torch'))
_PUFFER = Peer('PufferLib', 'puffer_catch.py', (), ('pufferlib', 'torch'))
_TORCHRL = Peer('TorchRL', 'torchrl_acting.py', (), ('torchrl', 'tensordict', 'torch'))
_SAMPLE_FACTORY = Peer('Sample Factory', 'sample_factory_pong.py', (), ('sample-factory', 'torch'))

WORKS = {
  'halfcheetah_ppo': Work(
    8,
    '256 steps, minibatches of 64, 10 epochs, tanh MLPs 64-64 for policy and value, Adam 3e-4',
    (
      *_ours('mujoco_ppo_halfcheetah'),
      Ours(
        'seed_acme, one process, envpool', 'halfcheetah_envpool.py', 'single_process', 'envpool'
      ),
    ),
    (_SB3, _torch('own'), _torch('envpool')),
  ),
  'catch_mlp': Work(
    512,
    'MLP 64-64, unrolls of 20 steps, one gradient pass, Adam 1e-3',
    _ours('bench_catch_mlp'),
    (_SB3, _torch('own'), _torch('envpool'), _PUFFER),
  ),
  'catch_lstm': Work(
    512,
    'MLP 64-64 and LSTM 128, unrolls of 20 steps, one gradient pass, Adam 1e-3',
    _ours('bench_catch_lstm'),
    (_torch('own'), _torch('envpool')),
  ),
  'pong_cnn': Work(
    64,
    'Nature CNN, 18 actions, 4 frames, unrolls of 20 steps, batches of 640 rows, one gradient '
    'pass, Adam 1e-3',
    _ours('bench_pong_cnn'),
    (_SB3, _torch('envpool'), _SAMPLE_FACTORY),
  ),
  'acting_catch': Work(
    512,
    'one process of environments, MLP 64-64 with policy and value, unrolls of 20 steps, no '
    'training',
    (Ours('seed_acme', 'acting_catch.py', 'local_mp'),),
    (_TORCHRL,),
  ),
  'acting_catch_2': Work(
    512,
    'two processes of environments, MLP 64-64 with policy and value, unrolls of 20 steps, no '
    'training',
    (Ours('seed_acme', 'acting_catch_2.py', 'local_mp'),),
    (_TORCHRL,),
  ),
  'acting_frames_2': Work(
    32,
    'two processes of environments, Nature CNN on 84 x 84 x 4 bytes, 18 actions, unrolls of 20 '
    'steps, no training',
    (Ours('seed_acme', 'acting_frames_2.py', 'local_mp'),),
    (_TORCHRL,),
  ),
}
