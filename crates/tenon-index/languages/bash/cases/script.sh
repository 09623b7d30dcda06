#!/usr/bin/env bash
# Installs things.
set -euo pipefail

readonly VERSION="1.0"
export PATH_PREFIX=/usr/local
count=0
declare -A table=([a]=1)

# Prints usage.
usage() {
  local name="$1"
  cat <<EOF
usage: $name
EOF
}

function install::run {
  inner() { echo hi; }
  for f in "$@"; do
    echo "$f"
  done
}

function both() (
  cd /tmp
)

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  usage "$0"
fi
