#!/usr/bin/env bash
# Prints the path of a Python that can run this project, or says how to get one. With an argument,
# 3.10 or 3.11, it looks for that version alone.
#
# Prefers Python 3.11 to 3.10. Reverb 0.14 and TensorFlow 2.15 together have wheels for no other
# version. A `python3.11` on the PATH may be a shim that does not start, so every candidate is
# tried.
set -uo pipefail

readonly PROBE='
import os, platform, sys
if sys.version_info[:2] not in ((3, 10), (3, 11)):
  sys.exit("is Python %d.%d" % sys.version_info[:2])
if sys.platform != "linux" or platform.machine() != "x86_64":
  sys.exit("is not for Linux on x86-64")
try:
  import ensurepip, venv
except ImportError:
  sys.exit("has no venv module")
print(os.path.realpath(sys.executable))
'
rejected=''

# Prints the real path and returns 0 if the candidate is usable; otherwise notes the reason.
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
      '    Debian 12        apt install python3.11 python3.11-venv' \
      '    Ubuntu 22.04     apt install python3.10 python3.10-venv' \
      '    pyenv            pyenv install 3.11' \
      '    conda or mamba   conda create -n py311 python=3.11' \
      '    uv               uv python install 3.11' \
      '  or name one:       make train PYTHON=/path/to/python3.11'
  } >&2
  exit 1
}

# Prints candidates for version $1. Those called only `python` may have any version.
candidates() {
  local version=$1 root
  type -a -p "python$version"
  for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv"; do
    [[ -n $root ]] && ls -1d "$root"/versions/"$version"*/bin/"python$version"
  done
  for root in "${CONDA_PREFIX:-}" "${MAMBA_ROOT_PREFIX:-}" "${HOME:-}"/{mini,ana}conda3 \
      "${HOME:-}"/{miniforge3,mambaforge,micromamba} /opt/conda; do
    [[ -n $root ]] && ls -1d "$root/bin/python$version" "$root"/envs/*/bin/"python$version"
  done
  command -v uv > /dev/null && uv python find --no-project "$version"
  ls -1d "${XDG_DATA_HOME:-${HOME:-}/.local/share}"/uv/python/"cpython-$version"*/bin/"python$version"
}

all_candidates() {
  candidates 3.11
  candidates 3.10
  type -a -p python3 python
}

if [[ -n ${PYTHON:-} ]]; then
  try_python "$PYTHON" && exit 0
  fail "PYTHON=$PYTHON cannot run seed_acme, which needs Python 3.11 or 3.10."
fi
while IFS= read -r candidate; do
  try_python "$candidate" && exit 0
done < <(${1:+candidates} ${1:-all_candidates} 2> /dev/null | awk '!seen[$0]++')
fail "seed_acme needs Python ${1:-3.11 or 3.10}, and none was found."
