#!/usr/bin/env bash
# Builds both images and runs them: healthy, not root, the same gradient bit for bit as in process, a clean end on SIGTERM.
#
#   docker/check.sh            needs root; installs buildah, podman, runc and mmdebstrap with apt-get where they are missing
#
# There is no registry in it: the base image is made by mmdebstrap under the name that the Dockerfiles expect, unless the
# machine has an image of that name.  Where images cannot be built it says why and ends with status 0.
#   PYTHON         interpreter with revolute installed (default: .venv/bin/python)
#   REVOLUTE_ISAS  instruction sets to compile (default: the one that PYTHON's engine runs, for the same bits)
#   BUILD_TYPE     of CMake; None compiles in a third of the time, and has the same bits (default: Release)
set -euo pipefail
cd "$(dirname "$0")/.."

BASE=docker.io/library/debian:bookworm-slim
TOOLS=(buildah podman runc mmdebstrap)
PYTHON=${PYTHON:-.venv/bin/python}
SERVER=localhost/revolute-server:check
WORKER=localhost/revolute-worker:check
NAME=revolute-check-$$
SCRATCH=$(mktemp -d)

say() { echo "docker/check.sh: $*"; }
fail() { say "FAILED: $*"; exit 1; }
skip() { say "skipped: $*"; exit 0; }

clean() {
  run_podman rm --force --time 0 "$NAME" >/dev/null 2>&1 || true
  rm -rf "$SCRATCH"
}

# a container engine within a container: no systemd, no cgroups of its own, limits that may not be raised
cat > "$SCRATCH/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF
run_podman() { CONTAINERS_CONF="$SCRATCH/containers.conf" podman --log-level fatal "$@"; }
trap clean EXIT

require_tools() {
  local missing=()
  for tool in "${TOOLS[@]}"; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "${missing[*]} not there, and no right to install"
  say "installs ${missing[*]}"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
    > "$SCRATCH/apt.log" 2>&1 || { tail -n 5 "$SCRATCH/apt.log"; skip "apt-get cannot install ${missing[*]}"; }
}

make_base() {
  if run_podman image exists "$BASE"; then return; fi
  say "makes a base image"
  # what the official slim image leaves out as well
  mmdebstrap --quiet --variant=minbase --include=ca-certificates \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$SCRATCH/base.tar" \
    > "$SCRATCH/base.log" 2>&1 || { tail -n 5 "$SCRATCH/base.log"; skip "no packages for a base image within reach"; }
  run_podman import --quiet "$SCRATCH/base.tar" "$BASE" >/dev/null
}

# build FILE TAG [ARGUMENTS...]
build() {
  local file=$1 tag=$2; shift 2
  local arguments=() certificates=/etc/ssl/certs/ca-certificates.crt
  # the machine's own certificates and index, in case its packages come through something of its own
  [ ! -e "$certificates" ] || arguments+=(--volume "$certificates:$certificates:ro" --build-arg "PIP_CERT=$certificates")
  for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL; do
    [ -z "${!name:-}" ] || arguments+=(--build-arg "$name=${!name}")
  done
  say "builds $tag"
  buildah bud --layers --isolation chroot --network host --pull-never --format docker "${arguments[@]}" "$@" \
    --file "$file" --tag "$tag" . > "$SCRATCH/build.log" 2>&1 || { tail -n 40 "$SCRATCH/build.log"; fail "build of $file"; }
}

free_port() { "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
healthy() { run_podman healthcheck run "$NAME" >/dev/null 2>&1; }
running() { [ "$(run_podman inspect --format '{{.State.Running}}' "$NAME")" = true ]; }
worker() { run_podman run --rm --network host --read-only --cap-drop all --security-opt no-new-privileges "$@"; }

# until SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}

require_tools
[ "$(id -u)" = 0 ] || skip "needs root"
make_base
isa=$("$PYTHON" -c 'from revolute_engine import native; print(native.isa)')
build docker/server.Dockerfile "$SERVER" --build-arg "REVOLUTE_ISAS=${REVOLUTE_ISAS:-$isa}" \
  --build-arg "BUILD_TYPE=${BUILD_TYPE:-Release}"
build docker/worker.Dockerfile "$WORKER"
for image in "$SERVER" "$WORKER"; do
  say "$image has $(($(run_podman image inspect --format '{{.Size}}' "$image") / 1000000)) MB," \
    "$(($(run_podman image inspect --format '{{.Size}}' "$BASE") / 1000000)) MB of them the base"
done

for image in "$SERVER" "$WORKER"; do
  [ "$(worker --entrypoint id "$image" -u)" = 10001 ] || fail "$image does not run as user 10001"
done
if worker "$WORKER" python -c 'import revolute_engine' 2>/dev/null; then fail "the worker's image has the engine"; fi

# tokens as compose.yaml has them, made by the image itself
cp docker/secrets.sh "$SCRATCH/"
chmod 755 "$SCRATCH"
"$SCRATCH/secrets.sh" env CONTAINERS_CONF="$SCRATCH/containers.conf" podman --log-level fatal run --rm \
  --entrypoint revolute "$SERVER" >/dev/null
token=(--volume "$SCRATCH/secrets/worker_token:/run/secrets/worker_token:ro" \
  --env REVOLUTE_TOKEN_FILE=/run/secrets/worker_token)

grpc=$(free_port); http=$(free_port)
run_podman run --detach --name "$NAME" --network host --read-only --tmpfs /tmp --cap-drop all \
  --security-opt no-new-privileges --env "REVOLUTE_HEALTH_URL=http://127.0.0.1:$http/readyz" \
  --volume "$SCRATCH/secrets/tokens:/run/secrets/tokens:ro" --env REVOLUTE_TOKENS=/run/secrets/tokens \
  "$SERVER" --grpc-port "$grpc" --http-port "$http" --threads 2 --workers 2 --grace 4 >/dev/null
until_true 60 healthy || { run_podman logs "$NAME"; fail "the server did not become healthy"; }
say "healthy"

address=grpc://127.0.0.1:$grpc
if worker --env "REVOLUTE_ADDRESS=$address" "$WORKER" >/dev/null 2>&1; then fail "served without a token"; fi
connect="revolute.connect('$address', token=open('/run/secrets/worker_token').read().strip())"
isa=$(worker "${token[@]}" "$WORKER" python -c \
  "import revolute; print($connect.server_info()['build']['isa'])")
for from in "$address" "http://127.0.0.1:$http"; do
  worker "${token[@]}" --volume "$PWD/docker/gradient.py:/gradient.py:ro" "$WORKER" python /gradient.py "$from" > "$SCRATCH/served"
  REVOLUTE_ISA=$isa "$PYTHON" docker/gradient.py > "$SCRATCH/local"
  cmp "$SCRATCH/served" "$SCRATCH/local" || fail "gradients over $from and in process ($isa) differ"
  [ "$(wc -l < "$SCRATCH/served")" = 3 ] || fail "no gradients"
done
say "gradients over gRPC and HTTP are those of this process, bit for bit ($isa)"

worker "${token[@]}" --env "REVOLUTE_ADDRESS=$address" --env WORKER_ROUNDS=5 --env WORKER_PAUSE=0 "$WORKER" > "$SCRATCH/rounds"
grep -q '^round 5: loss' "$SCRATCH/rounds" || { cat "$SCRATCH/rounds"; fail "the worker's command did not run"; }

# a call that would take days holds the server for its grace time
worker "${token[@]}" "$WORKER" python -c "
import revolute
with $connect as simulator:
    session = simulator.session(simulator.load_model('pendulum1'), batch=1)
    print('begun', flush=True)
    session.step([0.0], steps=10**10)
" > "$SCRATCH/held" 2>&1 &
held=$!
until_true 20 grep -qs begun "$SCRATCH/held" || { cat "$SCRATCH/held"; fail "no call to hold the server"; }
sleep 1
run_podman kill --signal TERM "$NAME" >/dev/null
unhealthy_but_running() { ! healthy && running; }
until_true 4 unhealthy_but_running || fail "still healthy, or gone at once, after SIGTERM with a call under way"
until_true 30 eval '! running' || fail "still runs 30 s after SIGTERM"
status=$(run_podman inspect --format '{{.State.ExitCode}}' "$NAME")
[ "$status" = 0 ] || { run_podman logs "$NAME"; fail "ended with status $status after SIGTERM"; }
if wait "$held"; then fail "a call of days was answered"; fi
grep -q 'revolute.contract.errors' "$SCRATCH/held" || { cat "$SCRATCH/held"; fail "the call's end was no error of revolute"; }
say "passed: unhealthy while it drains, status 0 after SIGTERM"
