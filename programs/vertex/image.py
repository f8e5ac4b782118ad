"""The Dockerfile of a node's image on Vertex AI: what stands between its FROM and its entry.

The base images are those of `Dockerfile` and `Dockerfile.gpu`; a test holds them together.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme.envs.interpreters import interpreter

PYTHON_IMAGE = 'python:3.10-slim-bookworm'
# TensorFlow 2.8 wants CUDA 11.2 and cuDNN 8.1.
CUDA_IMAGE = 'nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04'
# Whose interpreter the image of CUDA gets. Debian 11 has glibc 2.31, as Ubuntu 20.04; nothing can
# be installed in it any more, its archive is closed.
INTERPRETER_IMAGE = 'python:3.10-slim-bullseye'
APP = 'app'  # folder of the code, in the build context and below / in the image
# What Python and its modules link against and an image of CUDA lacks; both distributions call
# these the same.
_LIBRARIES_OF_PYTHON = (
  'ca-certificates',
  'libbz2-1.0',
  'libexpat1',
  'libffi7',
  'liblzma5',
  'libncursesw6',
  'libreadline8',
  'libsqlite3-0',
  'libssl1.1',
  'zlib1g',
)
# The keys of Nvidia's own archives were changed since, and nothing is wanted from there.
_WITHOUT_NVIDIA = 'rm -f /etc/apt/sources.list.d/cuda* /etc/apt/sources.list.d/nvidia* && '
USER = 1000  # as in `Dockerfile`; a number, so that the machine can tell that it is not root
_PIN = '^[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+$'
_PINS = f'/{APP}/pins.txt'
_LIBRARIES = ('libegl1', 'libgl1', 'libglib2.0-0')  # of OpenCV and MuJoCo


# Of the interpreter that actors run environments under, where that is another one.
_ACTOR_PREFIX = '/opt/actor'
ACTOR_PYTHON = f'{_ACTOR_PREFIX}/bin/python'
ACTOR_REQUIREMENTS = 'actor_requirements.txt'  # in the folder of the code


class Image(NamedTuple):
  """base: of FROM. instructions: lines that follow it."""

  base: str
  instructions: tuple[str, ...]


def make(has_accelerator: bool, environment: Mapping[str, str], actor_version: str = '') -> Image:
  """The image of a kind of node.

  environment: variables that it runs with. actor_version: such as 3.12, of a second interpreter
    with what `ACTOR_REQUIREMENTS` lists; '' = none.
  """
  libraries = _LIBRARIES + (_LIBRARIES_OF_PYTHON if has_accelerator else ())
  install = (
    f'RUN {_WITHOUT_NVIDIA if has_accelerator else ""}apt-get update '
    '&& apt-get install -y --no-install-recommends '
    f'{" ".join(sorted(libraries))} && rm -rf /var/lib/apt/lists/* '
    f'&& useradd --create-home --uid {USER} trainer'
  )
  python: tuple[str, ...] = ()
  if has_accelerator:
    python = (f'COPY --from={INTERPRETER_IMAGE} /usr/local /usr/local', 'RUN ldconfig')
  return Image(
    CUDA_IMAGE if has_accelerator else PYTHON_IMAGE,
    (
      'ENV DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8',
      '# hadolint ignore=DL3008',  # a distribution keeps no old versions to pin
      install,
      *python,
      f'WORKDIR /{APP}',
      f'COPY {APP}/requirements.txt {APP}/*.whl ./',
      # The exact versions hold for what pip installs to build a source distribution, too.
      f"RUN grep -E '{_PIN}' requirements.txt > {_PINS}",
      f'ENV PIP_CONSTRAINT={_PINS}',
      'RUN python -m pip install --no-cache-dir -r requirements.txt',
      *(_second_interpreter(actor_version, has_accelerator) if actor_version else ()),
      # For its user, whatever modes the files have.
      f'COPY --chown={USER} {APP}/ ./',
      *(f'ENV {name}="{value}"' for name, value in sorted(environment.items())),
    ),
  )


def with_its_python(config: config_lib.ExperimentConfig) -> config_lib.ExperimentConfig:
  """The configuration of nodes in an image: its second interpreter has a path of its own."""
  if interpreter.is_this_one(config.actor.python):
    return dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=''))
  return dataclasses.replace(config, actor=dataclasses.replace(config.actor, python=ACTOR_PYTHON))


def _second_interpreter(version: str, has_accelerator: bool) -> tuple[str, ...]:
  """Beside the first, which keeps the names `python` and `pip`."""
  release = 'bullseye' if has_accelerator else 'bookworm'  # as the interpreters above
  return (
    f'COPY --from=python:{version}-slim-{release} /usr/local {_ACTOR_PREFIX}',
    f'RUN echo {_ACTOR_PREFIX}/lib > /etc/ld.so.conf.d/actor.conf && ldconfig',
    f'COPY {APP}/{ACTOR_REQUIREMENTS} {ACTOR_REQUIREMENTS}',
    f'RUN PIP_CONSTRAINT= {ACTOR_PYTHON} -m pip install --no-cache-dir -r {ACTOR_REQUIREMENTS}',
  )
