#!/bin/sh
# Generates the Python messages of the v1 API, and comments.json with the comments of the proto files, which the server's OpenAPI
# description shows. Usage: generate.sh [output folder]
# Needs grpcio-tools 1.76.0, which `make lint` brings into .venv; set PYTHON for another interpreter. The output folder defaults
# to client/, where the modules are checked in as client/revolute/contract/v1/; tests/packaging regenerates them and compares.
# protoc names the Python modules after the paths of the proto files, so their imports are moved to that package.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
output=${1:-"$root/client"}
python=$(command -v "${PYTHON:-$root/.venv/bin/python}") || python=none
case $python in /*) ;; *) python=$PWD/$python ;; esac
version=$("$python" -c 'from importlib.metadata import version; print(version("grpcio-tools"))' 2> /dev/null) || version=none
if [ "$version" != "1.76.0" ]; then
    echo "generate.sh: expected an interpreter with grpcio-tools 1.76.0, got $version in $python; run make lint, or set PYTHON" >&2
    exit 1
fi
package="$output/revolute/contract/v1"
mkdir -p "$package"
cd "$root/proto"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m grpc_tools.protoc -I. --python_out="$work" --pyi_out="$work" \
    --include_source_info --descriptor_set_out="$work/descriptors" revolute/v1/*.proto
"$python" revolute/v1/comments.py "$work/descriptors" "$package/comments.json"
for stub in "$work"/revolute/v1/*; do
    sed -e 's/^from revolute\.v1 import/from revolute.contract.v1 import/' \
        -e "s/'revolute\.v1\.\([a-z_]*_pb2\)', _globals/'revolute.contract.v1.\1', _globals/" \
        "$stub" > "$package/$(basename "$stub")"
done
