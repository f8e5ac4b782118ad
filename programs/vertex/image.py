"""The Dockerfile of a node's image on Vertex AI: the lines between its FROM and its entry point.

The base image is that of `Dockerfile` and `Dockerfile.gpu`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import sys
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme.checks import device_names
from seed_acme.envs.interpreters import interpreter

APP = 'app'  # folder of the code, in the build context and below / in the image
# as in `Dockerfile`; a number, because a name would not show the machine that it is not root
USER = 1000
_PIN = '^[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+$'
_PINS = f'/{APP}/pins.txt'
_LIBRARIES = ('libegl1', 'libgl1', 'libglib2.0-0')  # needed by OpenCV and MuJoCo


# For a second interpreter, if actors' environments run under another Python.
_ACTOR_PREFIX = '/opt/actor'
ACTOR_PYTHON = f'{_ACTOR_PREFIX}/bin/python'
ACTOR_REQUIREMENTS = 'actor_requirements.txt'  # in the folder of the code


# where Google's machines mount the driver; nvidia/cuda images name the same folders
_DRIVER = '/usr/local/nvidia/lib:/usr/local/nvidia/lib64'


class Image(NamedTuple):
  """An image. base: in FROM. instructions: the lines after it."""

  base: str
  instructions: tuple[str, ...]


def python_image() -> str:
  """Returns the image of the Python that runs here, which pinned versions and pickles depend on."""
  return f'python:{sys.version_info[0]}.{sys.version_info[1]}-slim-bookworm'


def make(environment: Mapping[str, str], actor_version: str = '') -> Image:
  """Returns a node's image, also for accelerators, because TensorFlow's wheels bring CUDA.

  environment: variables that it runs with. actor_version: such as 3.12, of a second interpreter
    with the packages in `ACTOR_REQUIREMENTS`; '' = none.
  """
  # xmanager's Dockerfile makes this user before these lines; a second one would end the build.
  make_user = f'(id {USER} || useradd --create-home --uid {USER} trainer)'
  install = (
    'RUN apt-get update && apt-get install -y --no-install-recommends '
    f'{" ".join(_LIBRARIES)} && rm -rf /var/lib/apt/lists/* && {make_user}'
  )
  return Image(
    python_image(),
    (
      'ENV DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8',
      '# hadolint ignore=DL3008',  # a distribution keeps no old versions to pin
      install,
      f'WORKDIR /{APP}',
      f'COPY {APP}/requirements.txt {APP}/*.whl ./',
      # pip uses the exact versions also to build a source distribution.
      f"RUN grep -E '{_PIN}' requirements.txt > {_PINS}",
      f'ENV PIP_CONSTRAINT={_PINS}',
      'RUN python -m pip install --no-cache-dir -r requirements.txt',
      *(_second_interpreter(actor_version) if actor_version else ()),
      # Owned by its user, whatever modes the files have.
      f'COPY --chown={USER} {APP}/ ./',
      *(f'ENV {name}="{value}"' for name, value in sorted(environment.items())),
    ),
  )


def with_gpus(number: int) -> dict[str, str]:
  """Returns the variables with which a node finds its GPUs and refuses to train without them."""
  return {'LD_LIBRARY_PATH': _DRIVER, device_names.GPUS_VARIABLE: str(number)}


def with_its_python(config: config_lib.ExperimentConfig) -> config_lib.ExperimentConfig:
  """Returns the configuration for an image, where a second interpreter has another path."""
  if interpreter.is_this_one(config.actor.python):
    return dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=''))
  return dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=ACTOR_PYTHON))


def _second_interpreter(version: str) -> tuple[str, ...]:
  """Returns the lines for a second interpreter; the first keeps the names `python` and `pip`."""
  # The list is complete, so packages it lacks are missing on purpose, and pip need not add them.
  install = f'{ACTOR_PYTHON} -m pip install --no-cache-dir --no-deps -r {ACTOR_REQUIREMENTS}'
  return (
    f'COPY --from=python:{version}-slim-bookworm /usr/local {_ACTOR_PREFIX}',
    f'RUN echo {_ACTOR_PREFIX}/lib > /etc/ld.so.conf.d/actor.conf && ldconfig',
    f'COPY {APP}/{ACTOR_REQUIREMENTS} {ACTOR_REQUIREMENTS}',
    f'RUN PIP_CONSTRAINT= {install}',
  )
