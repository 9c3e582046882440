#!/bin/sh
# Generates the Python stubs of the v1 API, and comments.json with the comments of the proto files, which the server's OpenAPI
# description shows. Usage: generate.sh [output folder]
# Needs grpcio-tools 1.76.0 (set PYTHON to the interpreter that has it). The output folder defaults to client/, where
# the stubs are checked in as client/revolute/v1/; tests/packaging regenerates them and compares.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
output=${1:-"$root/client"}
python=${PYTHON:-python3}
version=$("$python" -c 'from importlib.metadata import version; print(version("grpcio-tools"))')
if [ "$version" != "1.76.0" ]; then
    echo "generate.sh: expected grpcio-tools 1.76.0, got $version" >&2
    exit 1
fi
mkdir -p "$output/revolute/v1"
cd "$root/proto"
descriptors=$(mktemp)
trap 'rm -f "$descriptors"' EXIT
"$python" -m grpc_tools.protoc -I. --python_out="$output" --pyi_out="$output" --grpc_python_out="$output" \
    --include_source_info --descriptor_set_out="$descriptors" revolute/v1/*.proto
"$python" revolute/v1/comments.py "$descriptors" "$output/revolute/v1/comments.json"
# messages alone need no service stubs
for messages in tensor error gradient_report verb; do
    rm -f "$output/revolute/v1/${messages}_pb2_grpc.py"
done
