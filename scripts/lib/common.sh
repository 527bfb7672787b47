# What every script here shares: messages, the cache folder, and a check for the programs a script needs.
# Sourced, never run. The caller has set -euo pipefail.

# The workspace in two parts, for tests and checks alike: cargo compiles a dependency anew whenever the features or the selected
# packages differ, and librdkafka takes minutes.
# shellcheck disable=SC2034  # used by those who source this
{
  # What says something without Kafka and RocksDB, and compiles no C.
  LIGHT=(--no-default-features
    --package flechtwerk --package flechtwerk-macros --package flechtwerk-ui-tests --package xtask
    --package flechtwerk-dev-broker --package flechtwerk-conformance --package flechtwerk-checkers
    --package flechtwerk-proxy
    --features "flechtwerk/cbor flechtwerk/avro flechtwerk/protobuf flechtwerk/schema-registry")
  # Simulated clusters: no C either, but the library with a feature that the others are to be checked without.
  SIMULATION=(--no-default-features --package flechtwerk-simulation)
  # The library and its behaviour, with Kafka's client and no more: what the demo is compiled from as well.
  QUICK=(--no-default-features --package flechtwerk --package flechtwerk-tests --package flechtwerk-chaos
    --features "flechtwerk/kafka flechtwerk/broker-tests")
  # All else, with all that the library has.
  FULL=(--workspace --exclude flechtwerk-macros --exclude flechtwerk-ui-tests --exclude xtask
    --exclude flechtwerk-dev-broker --exclude flechtwerk-conformance --exclude flechtwerk-checkers
    --exclude flechtwerk-simulation --exclude flechtwerk-proxy
    --features "flechtwerk/kafka flechtwerk/rocksdb flechtwerk/tls flechtwerk/sasl flechtwerk/zstd flechtwerk/broker-tests
      flechtwerk/cbor flechtwerk/avro flechtwerk/protobuf flechtwerk/schema-registry flechtwerk-tests/codecs
      flechtwerk-tests/crash-points flechtwerk-chaos/crash-points")
}

# The folder that survives checkouts: Kafka's jars, the prebuilt RocksDB, compiled dependencies.
flechtwerk_cache() {
  printf '%s\n' "${XDG_CACHE_HOME:-$HOME/.cache}/flechtwerk"
}

# Where make compiles to as well, so that nothing is compiled twice by who calls a script alone.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$(flechtwerk_cache)/target}

# Progress goes to stderr, so that what a script prints for programs stays clean.
say() { printf '%s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

die_usage() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

# need PROGRAM PACKAGE: ends the script where the program is missing, naming the line that installs it.
need() {
  command -v "$1" >/dev/null 2>&1 ||
    die "$1 is not installed; on Debian: apt-get install -y --no-install-recommends $2"
}

# with_lock FILE COMMAND..: one at a time across processes; where flock does not exist, unlocked.
with_lock() {
  local file=$1
  shift
  mkdir -p "$(dirname "$file")"
  if command -v flock >/dev/null 2>&1; then
    (
      flock 9
      "$@" 9>&-
    ) 9>"$file"
  else
    "$@"
  fi
}

# run_beside COMMAND..: runs the command of a script that keeps a server meanwhile, and gives its status. A signal is heard at once and
# handed on, so that the server can be removed afterwards.
run_beside() {
  local child status=0
  # In the background, or a signal would be heard only after the command's end.
  (
    trap - EXIT INT TERM HUP
    exec "$@"
  ) <&0 &
  child=$!
  # A terminal's ^C reaches the command by itself; a second one might mean "at once" to it.
  trap ':' INT
  # shellcheck disable=SC2064  # this child
  trap "kill -TERM $child 2>/dev/null || true" TERM HUP
  while :; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break
  done
  return "$status"
}

# Below the range from which systems take ports for outgoing connections, so that a server that was killed finds its own again.
PORT_FIRST=20000
PORT_COUNT=12000

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports N: that many distinct ports on which nothing listens.
free_ports() {
  local want=$1 port chosen=" "
  while [ "$want" -gt 0 ]; do
    port=$((PORT_FIRST + (RANDOM * 32768 + RANDOM) % PORT_COUNT))
    case $chosen in *" $port "*) continue ;; esac
    port_is_free "$port" || continue
    chosen="$chosen$port "
    want=$((want - 1))
    printf '%s\n' "$port"
  done
}

# maven_failed LOG: the last lines of a maven run that failed, and what to look at.
maven_failed() {
  tail -n 15 "$1" >&2
  die "maven could not fetch what is needed (its last lines are above); check that its repository can be reached"
}

# phase NAME COMMAND..: runs one step of a longer job under a heading and says how long it took. A failing step ends the job.
phase() {
  local name=$1 start=$SECONDS status=0
  shift
  say ""
  say "== $name"
  # In a subshell with errexit of its own, since `||` would switch it off.
  set +e
  (
    set -e
    "$@"
  )
  status=$?
  set -e
  if [ "$status" -ne 0 ]; then
    say "== $name: failed with status $status after $((SECONDS - start)) s"
    exit "$status"
  fi
  say "== $name: $((SECONDS - start)) s"
}
