"""SEED RL on TensorFlow 2, Reverb, Sonnet and Launchpad."""

import importlib as _importlib
import os as _os

_FOLDER = _os.path.dirname(_os.path.abspath(__file__))
# Folders of the repository's root that symbolic links make parts of this package.
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

# The module of each public name. It is imported on use only, because actors import this package and
# nothing behind these names.
_PUBLIC = {
  'Failure': 'types',
  'TrainingFailed': 'types',
  'UserError': 'types',
  'evaluate': 'programs.tools.api',
  'export_policy': 'programs.tools.api',
  'load_metrics': 'programs.api',
  'load_policy': 'programs.tools.api',
  'make_program': 'programs.api',
  'train': 'programs.api',
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> object:
  if name in _PUBLIC:
    return getattr(_importlib.import_module(f'{__name__}.{_PUBLIC[name]}'), name)
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
  return sorted(
    {'__version__', *__all__, *(name for name in globals() if not name.startswith('_'))}
  )
