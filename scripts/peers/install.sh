#!/usr/bin/env bash
# Makes a virtual environment with the libraries that compare.py measures beside ours (argument 1,
# .venv-peers unless given). Needs Python 3.11 (PYTHON names one) and 6 GB: PyPI has
# PyTorch for Linux only with CUDA.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=${1:-.venv-peers}
python=${PYTHON:-python3.11}
if ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2> /dev/null; then
  echo "error: $python is not a Python 3.11: name one, PYTHON=/path/to/python3.11" >&2
  exit 1
fi
[[ -x $venv/bin/python ]] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"

# Builds PufferLib from source without its own games, which its setup would download. Without them
# one name in its setup.py is undefined. Without CUDA's compiler on the PATH it builds for the CPU.
# Its requirements conflict with those of the others, so only its trainer's imports are listed.
fix=$(mktemp -d)
trap 'rm -rf "$fix"' EXIT
echo 'import builtins; builtins.c_extension_paths = []' > "$fix/sitecustomize.py"
bin=$(cd "$venv/bin" && pwd)
PATH=$bin:/usr/bin:/bin CUDA_HOME='' PYTHONPATH=$fix NO_OCEAN=1 "$bin/python" -m pip install \
  --quiet --disable-pip-version-check --no-deps --no-build-isolation pufferlib==3.0.0
"$bin/python" -m pip install --quiet --disable-pip-version-check --no-deps gym==0.26.2 \
  gym-notices==0.1.0 pettingzoo==1.24.1 shimmy==1.3.0 pyro-ppl==1.9.2 pyro-api==0.1.2 \
  opt_einsum==3.4.0 rich==15.0.0 rich-argparse==1.8.0 pynvml==13.0.1 nvidia-ml-py==13.615.71 \
  markdown-it-py==4.3.0 mdurl==0.1.2 Pygments==2.21.0
echo "Peers are in $venv. Now: .venv/bin/python scripts/peers/compare.py --work=NAME --python=$venv/bin/python"
