#!/usr/bin/env bash
# Builds Google Research Football from its source package, in a virtual environment of its own for
# actors (argument 1, .venv-football unless given). Some minutes on two cores; a second run does
# nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/progress.sh
venv=${1:-.venv-football}
readonly VERSION=2.10.2
readonly BOOST=1.82.0  # brings Boost.Python for 3.10 and 3.11; a distribution's is for its own Python
readonly NUMPY=1.23.5  # the newest that this Boost admits
readonly DEBIAN=(build-essential cmake libsdl2-dev libsdl2-image-dev libsdl2-ttf-dev
  libsdl2-gfx-dev libgl1-mesa-dev libegl1-mesa-dev libgl1 libegl1)

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}

if "$venv/bin/python" -c 'import gfootball.env' 2> /dev/null; then
  echo "Football is in $venv. Actors run there with --config.actor.python=$venv/bin/python"
  exit 0
fi

# The compiler and the libraries.
missing=()
if command -v dpkg-query > /dev/null; then
  for package in "${DEBIAN[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q 'ok installed' \
      || missing+=("$package")
  done
fi
if ((${#missing[@]})); then
  [[ $(id -u) == 0 ]] || fail "first run as root: apt-get install ${missing[*]}"
  echo "Installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" \
    | show_progress apt_step
fi
command -v cmake > /dev/null \
  || fail 'the build needs cmake, a C++ compiler, SDL2 with image, ttf and gfx, and OpenGL'

# gym 0.26 works with the engine without its old wrappers. setuptools and wheel build the package.
version=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
.venv/bin/seed-acme actor-env "$venv" --python="$version" --packages \
  absl-py "cmeel-boost==$BOOST" 'gym==0.26.2' "numpy==$NUMPY" 'opencv-python-headless<4.12' \
  'pygame==2.6.1' psutil scipy six 'setuptools==65.5.0' wheel
python=$(realpath -s "$venv/bin/python")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# With psutil installed, the engine's own setup does not start a compiler for every file at once.
echo "Downloading Football $VERSION"
"$python" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: \
  --no-build-isolation -d "$work" "gfootball==$VERSION"
tar -xzf "$work/gfootball-$VERSION.tar.gz" -C "$work"
cd "$work/gfootball-$VERSION"
prefix=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib") + "/cmeel.prefix")')

# Without these paths, cmake would find another Python or Boost of the machine first. A virtual
# environment has no headers; they are with the interpreter from which it was created.
base=$("$python" -c 'import sys; print(sys.base_prefix)')
build() {
  cmake . -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-w \
    -DCMAKE_POLICY_DEFAULT_CMP0074=NEW -DCMAKE_POLICY_DEFAULT_CMP0094=NEW \
    -DPython_ROOT_DIR="$base" -DPython_EXECUTABLE="$base/bin/python$version" \
    -DPython_FIND_STRATEGY=LOCATION \
    -DBoost_NO_SYSTEM_PATHS=ON -DBOOST_ROOT="$prefix" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_RPATH="$prefix/lib" \
    && make -j "$(nproc)" \
    && mkdir -p lib && cp libgame.so lib/prebuilt_gameplayfootball.so
}
echo "Building the engine of Football $VERSION (some minutes)"
if ! (cd third_party/gfootball_engine && build) 2>&1 | tee "$work/build.log" \
    | show_progress make_step; then
  tail -n 20 "$work/build.log" >&2
  fail 'the engine of Football could not be built; the end of the log is above'
fi

echo "Installing Football $VERSION"
GFOOTBALL_USE_PREBUILT_SO=1 "$python" -m pip install -q --disable-pip-version-check --no-deps \
  --no-build-isolation .
cd "$work"
SDL_VIDEODRIVER=dummy "$python" -c 'import gfootball.env' \
  || fail "Football was built but cannot be imported by $python"
echo "Football is in $venv. Actors run there with --config.actor.python=$venv/bin/python"
