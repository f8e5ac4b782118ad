#!/usr/bin/env bash
# Prints the path of a Python 3.10 that can run this project, or says how to get one.
#
# Python 3.10 exactly, because no other has wheels of Launchpad that work with TensorFlow
# 2.8; with its shared library, because courier's extension modules are linked against it.
# A `python3.10` on the PATH may be a shim that does not start: every candidate is tried.
set -uo pipefail

readonly PROBE='
import ctypes, os, platform, sys, sysconfig
if sys.version_info[:2] != (3, 10):
  sys.exit("is Python %d.%d" % sys.version_info[:2])
if sys.platform != "linux" or platform.machine() != "x86_64":
  sys.exit("is not for Linux on x86-64")
try:
  ctypes.CDLL("libpython3.10.so.1.0")
except OSError:
  sys.exit("has no shared library libpython3.10.so.1.0")
try:
  import ensurepip, venv
except ImportError:
  sys.exit("has no venv module")
print(os.path.realpath(sys.executable))
'
rejected=''

# Prints the real path and returns 0 if the candidate serves; otherwise notes the reason.
try_python() {
  local candidate=$1 answer reason
  if answer=$("$candidate" -I -c "$PROBE" 2>&1); then
    printf '%s\n' "${answer##*$'\n'}"
    return 0
  fi
  reason=${answer%%$'\n'*}
  case $reason in
    is\ * | has\ *) ;;
    *) reason='does not start' ;;
  esac
  rejected+="    $candidate $reason"$'\n'
  return 1
}

fail() {
  {
    printf '%s\n' "$1"
    [[ -n $rejected ]] && printf '  Tried:\n%s' "$rejected"
    printf '%s\n' \
      '  Get one by any of these, then run the same command again:' \
      '    Ubuntu 22.04     apt install python3.10 python3.10-venv libpython3.10' \
      '    pyenv            PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install 3.10' \
      '    conda or mamba   conda create -n py310 python=3.10' \
      '    uv               uv python install 3.10' \
      '  or name one:       make train PYTHON=/path/to/python3.10'
  } >&2
  exit 1
}

candidates() {
  local root
  type -a -p python3.10 python3 python
  for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv"; do
    [[ -n $root ]] && ls -1d "$root"/versions/3.10*/bin/python3.10
  done
  for root in "${CONDA_PREFIX:-}" "${MAMBA_ROOT_PREFIX:-}" "${HOME:-}"/{mini,ana}conda3 \
      "${HOME:-}"/{miniforge3,mambaforge,micromamba} /opt/conda; do
    [[ -n $root ]] && ls -1d "$root"/bin/python3.10 "$root"/envs/*/bin/python3.10
  done
  command -v uv > /dev/null && uv python find --no-project 3.10
  ls -1d "${XDG_DATA_HOME:-${HOME:-}/.local/share}"/uv/python/cpython-3.10*/bin/python3.10
}

if [[ -n ${PYTHON:-} ]]; then
  try_python "$PYTHON" && exit 0
  fail "PYTHON=$PYTHON cannot run seed_acme, which needs Python 3.10 with its shared library."
fi
while IFS= read -r candidate; do
  try_python "$candidate" && exit 0
done < <(candidates 2> /dev/null | awk '!seen[$0]++')
fail 'seed_acme needs Python 3.10 with its shared library, and none was found.'
