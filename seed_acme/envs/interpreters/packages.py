"""What an interpreter needs to run environments for a learner, as pip takes it.

Read by setup.py too, for the distribution `seed_acme_actor`: imports nothing.
"""

REQUIRES = ['dm-env>=1.6', 'dm-tree>=0.1.7', 'grpcio>=1.50,<2', 'numpy>=1.22']
EXTRAS = {
  'atari': ['ale-py>=0.12,<0.13', 'opencv-python-headless>=4.8'],
  'dm-control': ['dm_control>=1.0.11'],
  'envpool': ["envpool>=1.2.5; python_version >= '3.11'"],
  'gymnasium': ['gymnasium>=0.29'],
  'mujoco': ['gymnasium>=1.0', 'imageio>=2.31', 'mujoco>=2.3.3'],
}
# The versions that are tried; of what is not named here pip takes the newest that fits.
CONSTRAINTS = [
  'ale-py==0.12.1',
  'dm-env==1.6',
  'dm-tree==0.1.10',
  "dm_control==1.0.11; python_version < '3.11'",
  "envpool==1.2.5; python_version < '3.12'",
  "envpool==1.2.7; python_version >= '3.12'",
  'grpcio==1.85.1',
  'gymnasium==1.4.0',
  "mujoco==2.3.3; python_version < '3.11'",
  "numpy==1.23.5; python_version < '3.11'",
  "numpy==2.4.6; python_version == '3.11'",
  "numpy==2.5.5; python_version >= '3.12'",
  "opencv-python-headless==4.11.0.86; python_version < '3.11'",
]
