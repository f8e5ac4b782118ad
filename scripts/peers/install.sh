#!/usr/bin/env bash
# Makes a virtual environment with the libraries that compare.py measures beside ours (argument 1,
# .venv-peers unless given). Needs Python 3.11 (PYTHON names one) and 6 GB: PyPI has PyTorch for
# Linux with CUDA only.
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
echo "Peers are in $venv. Now: .venv/bin/python scripts/peers/compare.py --python=$venv/bin/python"
