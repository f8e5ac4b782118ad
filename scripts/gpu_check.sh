#!/usr/bin/env bash
# Runs the checks that need an NVIDIA GPU, in one command of at most ten minutes:
#
#   PYTHON=/path/to/python3.11 bash scripts/gpu_check.sh RESULT.json [PACKAGES]
#
# PYTHON is an interpreter that imports this package's requirements and tensorflow[and-cuda], or a
# bare one where PACKAGES is a folder of their unpacked wheels. Needs no network. Writes one JSON
# with the result of each step. A step that runs out of time keeps its partial result.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?say where the JSON goes: bash scripts/gpu_check.sh RESULT.json}
python=${PYTHON:-.venv/bin/python}
export PYTHONPATH="$PWD${2:+:$2}${PYTHONPATH:+:$PYTHONPATH}"
# Keeps the kernels that a GPU newer than Ada compiles at its first start, for the later steps.
export CUDA_CACHE_PATH=${CUDA_CACHE_PATH:-$PWD/runs/cuda_cache} CUDA_CACHE_MAXSIZE=4294967296
exec "$python" scripts/gpu_check.py "$out"
