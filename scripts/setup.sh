#!/usr/bin/env bash
# Makes the virtual environment (argument 1, .venv unless given) and installs the project
# into it, editable, with the versions of constraints.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${1:-.venv}
log=$venv/install.log
source scripts/progress.sh

# An environment is recreated if its Python is gone, or if it contains packages that installing
# over it would not remove.
if ! reason=$("$venv/bin/python" scripts/check_installed.py --base 2> /dev/null)
then
  python=$(bash scripts/find_python.sh)
  echo "Making $venv${reason:+ anew, because $reason,} with $python"
  "$python" -m venv --clear "$venv"
fi

# Packages installed in a wrong version are also named to pip. Otherwise a package that others
# require only within a range would keep its version.
wrong=$("$venv/bin/python" scripts/check_installed.py constraints.txt || true)
number=$(grep -c . <<< "$wrong" || true)
if ((number > 0 && number <= 10))
then
  echo "Missing or of another version in $venv:" $wrong
fi

# Launchpad is installed from a wheel that is built from DeepMind's. It is reinstalled each time,
# because its version stays the same when the courier in it changes.
wheel=$("$venv/bin/python" scripts/launchpad_wheel.py "$venv/wheels")
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index \
  --force-reinstall "$wheel"

extras=dev,gym,gymnasium,box2d,atari,mujoco,dm-control,dmlab2d,video,metrics,wandb,mlflow,search,vertex,docs
[[ -n ${CUDA:-} ]] && extras+=,cuda
echo "Installing ($([[ -n ${CUDA:-} ]] && echo 9 || echo 4) GB on disk; a few minutes)"
# Build environments take their versions from the same file.
if ! PIP_CONSTRAINT=constraints.txt "$venv/bin/python" scripts/install.py "$venv" \
    --find-links "$venv/wheels" --editable ".[$extras]" $wrong 2>&1 \
    | tee "$log" | show_progress pip_step
then
  echo "The installation failed; the end of $log:" >&2
  tail -n 12 "$log" >&2
  exit 1
fi
echo "Installed into $venv"
