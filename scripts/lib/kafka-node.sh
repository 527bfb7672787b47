# One Kafka node of a test cluster: its jars, settings, process and readiness. Sourced by scripts/kafka.
#
# A cluster is a folder: `cluster` holds what was asked for, `node-N/` each node's settings, log, data and pid.
# Nothing else is remembered, so that any process can look after a cluster that another one started.

KAFKA_VERSION=4.4.0
KAFKA_SCALA=2.13
SLF4J_VERSION=1.7.36
# A loaded machine of two cores brings three nodes up in about 25 s; this is for the worst of days.
KAFKA_START_SECONDS=${KAFKA_START_SECONDS:-120}
KAFKA_STOP_SECONDS=20

kafka_libs() { printf '%s\n' "$(flechtwerk_cache)/kafka/libs-$KAFKA_VERSION"; }

kafka_fetch_jars() {
  local libs
  libs=$(kafka_libs)
  [ -e "$libs/.complete" ] || with_lock "$(flechtwerk_cache)/kafka/libs.lock" kafka_fetch_jars_locked "$libs"
}

kafka_fetch_jars_locked() {
  local libs=$1 work
  [ ! -e "$libs/.complete" ] || return 0
  need mvn maven
  say "fetching Apache Kafka $KAFKA_VERSION with maven, once: 54 MB into $libs"
  rm -rf "$libs" "$libs.part"
  work=$libs.part
  mkdir -p "$work"
  cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>flechtwerk</groupId><artifactId>kafka-libs</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_$KAFKA_SCALA</artifactId><version>$KAFKA_VERSION</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$KAFKA_VERSION</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>$SLF4J_VERSION</version></dependency>
  </dependencies>
</project>
POM
  mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/libs" \
    >"$work/maven.log" 2>&1 || maven_failed "$work/maven.log"
  ls "$work/libs/"kafka_*.jar >/dev/null 2>&1 || die "maven left no kafka jar in $work/libs"
  mv "$work/libs" "$libs"
  rm -rf "$work"
  touch "$libs/.complete"
}

# java_run HEAP LOG_LEVEL CLASS ARGS..: one JVM over the jars.
java_run() {
  local heap=$1 level=$2
  shift 2
  # shellcheck disable=SC2086  # JVM options are words
  exec java "-Xmx$heap" ${KAFKA_JVM_OPTS:-} \
    -Dorg.slf4j.simpleLogger.defaultLogLevel="$level" \
    -Dorg.slf4j.simpleLogger.showDateTime=true -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS \
    -cp "$(kafka_libs)/*" "$@"
}

# A random KRaft id: 16 bytes as base64 for URLs, not starting with a dash.
random_id() {
  local id=-
  while [ "${id#-}" != "$id" ]; do
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')
  done
  printf '%s\n' "$id"
}

# node_write_settings DIR N: server.properties from `cluster` (sourced by the caller) and this node's ports.
node_write_settings() {
  local dir=$1 n=$2 replication=1 min_isr=1 session=6000 voters="" i listeners advertised
  # A broker whose session ends, by a pause or under load, loses the leadership of its partitions. A single node has nobody
  # to take over, and its transaction coordinator then takes them for deleted and ends transactions without their markers.
  # A restart has to wait for the end of the old session, so it gets a short one.
  if [ "$NODES" -eq 1 ] && [ "${RESTART:-no}" = no ]; then session=3600000; fi
  if [ "$NODES" -ge 3 ]; then
    replication=3
    min_isr=2
  fi
  for ((i = 1; i <= NODES; i++)); do
    voters="${voters:+$voters,}$i@127.0.0.1:${CONTROLLER_PORTS[i - 1]}"
  done
  listeners="PLAINTEXT://127.0.0.1:${PORTS[n - 1]},CONTROLLER://127.0.0.1:${CONTROLLER_PORTS[n - 1]}"
  advertised="PLAINTEXT://127.0.0.1:${PORTS[n - 1]}"
  if [ "$TLS" = yes ]; then
    listeners="$listeners,SECURE://127.0.0.1:${TLS_PORTS[n - 1]}"
    # By name: some releases of OpenSSL compare certificates with names only.
    advertised="$advertised,SECURE://localhost:${TLS_PORTS[n - 1]}"
  fi
  mkdir -p "$dir/node-$n"
  cat >"$dir/node-$n/server.properties" <<SETTINGS
process.roles=broker,controller
node.id=$n
controller.quorum.voters=$voters
listeners=$listeners
advertised.listeners=$advertised
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
log.dirs=$dir/node-$n/data

offsets.topic.replication.factor=$replication
transaction.state.log.replication.factor=$replication
transaction.state.log.min.isr=$min_isr
share.coordinator.state.topic.replication.factor=$replication
share.coordinator.state.topic.min.isr=$min_isr
default.replication.factor=$replication
min.insync.replicas=$min_isr
auto.create.topics.enable=false

# few partitions of the internal topics: a quick start
offsets.topic.num.partitions=5
transaction.state.log.num.partitions=5
share.coordinator.state.topic.num.partitions=1
# tests need no grace at the first join, and short sessions
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
# a node that was killed is noticed, and may come back, soon
broker.session.timeout.ms=$session
broker.heartbeat.interval.ms=1000
# transactions past their time-out are looked for every second
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
# topics that ask for it are compacted at once
log.cleaner.backoff.ms=1000
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=16777216
log.initial.task.delay.ms=1000
log.segment.delete.delay.ms=1000
# little memory, few threads
num.network.threads=2
num.io.threads=4
num.replica.fetchers=1
num.recovery.threads.per.data.dir=1
background.threads=2
group.coordinator.threads=2
SETTINGS
  if [ "$TLS" = yes ]; then
    cat >>"$dir/node-$n/server.properties" <<SETTINGS

sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=$dir/tls/server.pem
SETTINGS
  fi
  if [ -s "$dir/extra.properties" ]; then
    { echo; cat "$dir/extra.properties"; } >>"$dir/node-$n/server.properties"
  fi
}

# node_format DIR N: the data folder, once, with the test user's SCRAM credentials where TLS was asked for.
node_format() {
  local dir=$1 n=$2 scram=()
  [ ! -e "$dir/node-$n/data/meta.properties" ] || return 0
  if [ "$TLS" = yes ]; then
    scram=(--add-scram "SCRAM-SHA-512=[name=$SCRAM_USER,password=$(cat "$dir/password")]")
  fi
  (KAFKA_JVM_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" \
    java_run 128m warn kafka.tools.StorageTool format -t "$CLUSTER_ID" -c "$dir/node-$n/server.properties" \
    ${scram[@]+"${scram[@]}"}) >"$dir/node-$n/format.log" 2>&1 || {
    tail -n 15 "$dir/node-$n/format.log" >&2
    die "node $n could not be formatted (its last lines are above)"
  }
}

# node_pid DIR N: the pid, if that process lives and is this node; a reused pid is not.
node_pid() {
  local dir=$1 n=$2 pid
  [ -s "$dir/node-$n/pid" ] || return 1
  read -r pid <"$dir/node-$n/pid"
  [ -n "$pid" ] || return 1
  process_args "$pid" | grep -qF "$dir/node-$n/server.properties" || return 1
  printf '%s\n' "$pid"
}

process_args() {
  if [ -d /proc/self ]; then
    { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null || true
  else
    ps -o args= -p "$1" 2>/dev/null || true
  fi
}

# Whether every thread of the process is stopped (SIGSTOP).
process_is_stopped() {
  if [ -d /proc/self ]; then
    ! sed -n 's/^State:[[:space:]]*//p' "/proc/$1/task/"*/status 2>/dev/null | grep -qv '^T'
  else
    [ "$(ps -o state= -p "$1" 2>/dev/null | cut -c1)" = T ]
  fi
}

# node_launch DIR N: starts the process; it outlives this script and takes no signal of its terminal.
node_launch() {
  local dir=$1 n=$2 detach=()
  ! node_pid "$dir" "$n" >/dev/null || return 0
  if command -v setsid >/dev/null 2>&1; then detach=(setsid); fi
  (
    cd "$dir/node-$n"
    # shellcheck disable=SC2086  # JVM options are words
    exec ${detach[@]+"${detach[@]}"} java "-Xms${KAFKA_HEAP:-512m}" "-Xmx${KAFKA_HEAP:-512m}" \
      ${KAFKA_JVM_OPTS:-} \
      -Dorg.slf4j.simpleLogger.defaultLogLevel=info \
      -Dorg.slf4j.simpleLogger.showDateTime=true -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS \
      -cp "$(kafka_libs)/*" kafka.Kafka "$dir/node-$n/server.properties"
  ) >"$dir/node-$n/log" 2>&1 </dev/null 9>&- &
  local pid=$! tries=500
  printf '%s\n' "$pid" >"$dir/node-$n/pid"
  disown "$pid"
  # Until exec has happened the process does not yet look like a node.
  while [ "$tries" -gt 0 ] && kill -0 "$pid" 2>/dev/null && ! node_pid "$dir" "$n" >/dev/null; do
    tries=$((tries - 1))
    sleep 0.01
  done
}

# known_nodes PORT: the ids of all nodes that the node on this port knows as alive, one a line.
# It speaks Kafka's Metadata request (version 4, no topics) itself: a JVM per question would cost more than the start.
known_nodes() {
  local size bytes i count
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || return 1
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  # size 17, api key 3, version 4, correlation id 1, client id "fw", no topics, no auto creation
  printf '\0\0\0\021\0\003\0\004\0\0\0\001\0\002fw\0\0\0\0\0' >&3
  # shellcheck disable=SC2046  # od prints the bytes as words
  set -- $(timeout 3 head -c 4 <&3 | od -An -v -tu1)
  if [ $# -ne 4 ]; then exec 3>&-; return 1; fi
  size=$(($3 * 256 + $4))
  # shellcheck disable=SC2207
  bytes=($(timeout 3 head -c "$size" <&3 | od -An -v -tu1))
  exec 3>&-
  [ "${#bytes[@]}" -eq "$size" ] || return 1
  # correlation id and throttle time, then the brokers: id, host, port, rack or -1
  count=$((bytes[11]))
  i=12
  while [ "$count" -gt 0 ]; do
    printf '%s\n' "$((bytes[i + 2] * 256 + bytes[i + 3]))"
    i=$((i + 6 + bytes[i + 4] * 256 + bytes[i + 5] + 4))
    if [ "${bytes[i]}" -ge 128 ]; then i=$((i + 2)); else i=$((i + 2 + bytes[i] * 256 + bytes[i + 1])); fi
    count=$((count - 1))
  done
}

# node_await DIR N WANTED: until the node on this cluster's port answers and knows WANTED nodes, itself among them.
# Returns 1 when the process ended or the time is up.
node_await() {
  local dir=$1 n=$2 wanted=$3 deadline=$((SECONDS + KAFKA_START_SECONDS)) nodes
  while :; do
    if nodes=$(known_nodes "${PORTS[n - 1]}") &&
      grep -qx "$n" <<<"$nodes" && [ "$(wc -l <<<"$nodes")" -ge "$wanted" ]; then
      return 0
    fi
    node_pid "$dir" "$n" >/dev/null || return 1
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.2
  done
}

node_show_log() {
  say "the last lines of $1/node-$2/log:"
  tail -n 20 "$1/node-$2/log" | sed 's/^/  /' >&2
}

# node_end DIR N SIGNAL: ends the process by its pid and waits until it is gone; SIGKILL when it takes too long.
node_end() {
  local dir=$1 n=$2 signal=$3 pid deadline=$((SECONDS + KAFKA_STOP_SECONDS))
  pid=$(node_pid "$dir" "$n") || { rm -f "$dir/node-$n/pid"; return 0; }
  kill "-$signal" "$pid" 2>/dev/null || true
  kill -CONT "$pid" 2>/dev/null || true
  while node_pid "$dir" "$n" >/dev/null; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      say "node $n did not stop within $KAFKA_STOP_SECONDS s, killing it"
      kill -KILL "$pid" 2>/dev/null || true
      deadline=$((SECONDS + KAFKA_STOP_SECONDS))
    fi
    sleep 0.1
  done
  rm -f "$dir/node-$n/pid"
}
