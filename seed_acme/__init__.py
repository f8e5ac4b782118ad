"""SEED RL on TensorFlow 2, Reverb, Sonnet and Launchpad."""

import os as _os

_FOLDER = _os.path.dirname(_os.path.abspath(__file__))
# Folders of the repository's root, parts of this package by symbolic links.
_LINKED = ('agents', 'configs', 'programs', 'replay')

for _name in _LINKED:
  if not _os.path.isdir(_os.path.join(_FOLDER, _name)):
    raise ImportError(
      f'{_os.path.join(_FOLDER, _name)} should be a symbolic link to ../{_name} and is not: '
      'this copy lost its links (some zip tools and file systems turn them into text files).\n'
      'Clone the repository with git on a Linux file system, after '
      '`git config --global core.symlinks true`.'
    )

from seed_acme.libraries import grpc_variables as _grpc_variables  # noqa: E402 - after that check
from seed_acme.version import __version__ as __version__  # noqa: E402

_grpc_variables.set_defaults()  # before anything loads gRPC

__all__ = [
  'TrainingFailed',
  'UserError',
  'evaluate',
  'export_policy',
  'load_metrics',
  'load_policy',
  'make_program',
  'train',
]


def __getattr__(name: str) -> object:
  # On use only: actors import this package and nothing behind these names.
  if name in __all__:
    from seed_acme.programs import api

    return getattr(api, name)
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
  return sorted(
    {'__version__', *__all__, *(name for name in globals() if not name.startswith('_'))}
  )
