#!/usr/bin/env bash
# Makes the tokens that compose.yaml hands out, into docker/secrets: the server's file of hashes, the token of the workers
# (may run) and that of Prometheus (may read).
#
#   docker/secrets.sh [COMMAND...]    COMMAND runs `revolute`, by default docker with the server's image
set -euo pipefail
umask 022
folder=$(dirname "$0")/secrets
[ ! -e "$folder/tokens" ] || { echo "docker/secrets.sh: $folder/tokens is there; remove it for new ones" >&2; exit 1; }
[ $# -gt 0 ] || set -- docker run --rm -i --entrypoint revolute revolute-server
mkdir -p -m 700 "$folder"
draft=$(mktemp -d "$folder/draft.XXXXXX")
trap 'rm -rf "$draft"' EXIT

run=("$@")
# new NAME ROLE: the token to NAME_token, and the line with its hash to the server's file
new() {
  "${run[@]}" token new --name "$1" --role "$2" > "$draft/$1_token" 2> "$draft/said"
  grep -E "^$1:$2:[0-9a-f]{64}\$" "$draft/said" >> "$draft/tokens"
}
new worker run
new metrics read
# containers run as another user, who has to read them; the folder keeps everybody else out
chmod 644 "$draft"/tokens "$draft"/*_token
mv "$draft"/tokens "$draft"/*_token "$folder/"
echo "docker/secrets.sh: wrote $folder"
