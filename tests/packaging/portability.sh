#!/usr/bin/env bash
# The engine where nobody of us sits: other processors, another compiler, sanitizers.
#
#   tests/packaging/portability.sh [arm64] [arm64-python] [clang] [sanitizers]     default: all
#
# arm64         cross-compiles the C++ tests for arm64 and runs them under qemu
# arm64-python  cross-compiles the extension module and runs cases A and B of tests/cases with Debian's arm64 Python
# clang         compiles the C++ tests with clang++ for each instruction set of this machine, warnings are errors
# sanitizers    compiles them with AddressSanitizer and UndefinedBehaviorSanitizer
#
# Debian or a relative of it; what is missing is installed with apt-get, given root.  Everything is written below
# build/portability, and .venv must be there (make build).  JOBS says how many compile at a time (default 2).
set -euo pipefail
cd "$(dirname "$0")/../.."

JOBS=${JOBS:-2}
BUILD=build/portability
SYSROOT=$BUILD/arm64-root
SITE=$BUILD/arm64-site
VENV=$PWD/.venv
ARM64=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++)

say() { echo "portability.sh: $*"; }

# need COMMAND PACKAGE...: installs the packages where the command is not there
need() {
  local command=$1; shift
  command -v "$command" >/dev/null && return
  say "installs $*"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# configure FOLDER [OPTIONS...]
configure() {
  local folder=$1; shift
  "$VENV/bin/cmake" -S . -B "$BUILD/$folder" -G Ninja -DCMAKE_MAKE_PROGRAM="$VENV/bin/ninja" "$@" >/dev/null
}

# cpp_tests FOLDER [OPTIONS...]: configures, compiles and runs the C++ tests
cpp_tests() {
  local folder=$1; shift
  say "C++ tests, $folder"
  configure "$folder" -DREVOLUTE_BUILD_MODULES=OFF -DREVOLUTE_BUILD_TESTS=ON "$@"
  "$VENV/bin/cmake" --build "$BUILD/$folder" --target engine_tests -j "$JOBS"
  "$VENV/bin/ctest" --test-dir "$BUILD/$folder" --output-on-failure -j "$JOBS"
}

arm64() {
  need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need qemu-aarch64-static qemu-user-static
  cpp_tests arm64 "${ARM64[@]}" "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static;-L;/usr/aarch64-linux-gnu"
}

arm64_python() {
  need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need qemu-aarch64-static qemu-user-static
  need mmdebstrap mmdebstrap
  # unpacked only, nothing in it is configured: enough to link with and to run one interpreter
  if [ ! -e "$SYSROOT/usr/bin/python3" ]; then
    say "unpacks an arm64 Python"
    mmdebstrap --quiet --variant=extract --architectures=arm64 \
      --include=python3-minimal,libpython3-stdlib,libpython3-dev,libstdc++6,libc6-dev bookworm "$SYSROOT"
  fi
  local python version suffix
  python=$(readlink -f "$SYSROOT/usr/bin/python3")
  version=${python##*/python}
  suffix=.cpython-${version/./}-aarch64-linux-gnu.so
  say "compiles the extension module for arm64 Python $version"
  "$VENV/bin/python" -m pip install --quiet --upgrade --target "$SITE" --only-binary :all: --python-version "$version" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    'mujoco-core>=4.0' numpy protobuf grpcio httpx pytest pytest-timeout
  # the sysroot's headers come last: Python's own configuration only, the rest is the cross compiler's
  configure arm64-python "${ARM64[@]}" -DPYBIND11_USE_CROSSCOMPILING=ON -DPYTHON_MODULE_EXT_SUFFIX="$suffix" \
    -Dpybind11_DIR="$("$VENV/bin/python" -m pybind11 --cmakedir)" -DPython_EXECUTABLE="$VENV/bin/python" \
    -DPython_INCLUDE_DIR="$PWD/$SYSROOT/usr/include/python$version" \
    -DCMAKE_CXX_FLAGS="-idirafter $PWD/$SYSROOT/usr/include"
  "$VENV/bin/cmake" --build "$BUILD/arm64-python" -j "$JOBS"
  # the package with the module in it, as an installation has them
  rm -rf "$SITE/revolute_engine"
  cp -r engine/python/revolute_engine "$SITE/"
  cp "$BUILD/arm64-python/_engine_generic$suffix" "$SITE/revolute_engine/"
  say "cases A and B with arm64 Python"
  PYTHONPATH=$SITE:client qemu-aarch64-static -L "$SYSROOT" "$python" -m pytest -q -p no:cacheprovider --noconftest \
    --timeout 1200 tests/cases/test_[AB]*.py
}

clang() {
  need clang++ clang
  cpp_tests clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS=-Werror
}

sanitizers() {
  cpp_tests sanitizers -DREVOLUTE_ISAS=v3 -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
}

[ -x "$VENV/bin/ninja" ] || { say "no $VENV: run make build first"; exit 1; }
mkdir -p "$BUILD"
for what in "${@:-arm64 arm64-python clang sanitizers}"; do
  for part in $what; do
    case $part in
      arm64 | clang | sanitizers) "$part" ;;
      arm64-python) arm64_python ;;
      *) say "expected arm64, arm64-python, clang or sanitizers, got $part"; exit 1 ;;
    esac
  done
done
