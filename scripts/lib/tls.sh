# What a listener with TLS needs, and Kafka's with SCRAM: a CA of its own, the server's certificate and a user's password.
# Sourced by scripts/kafka and scripts/postgres. All of it is made anew for each server and is worth nothing outside it.

# tls_create DIR: ca.pem, tls/server.pem (key and chain, which Kafka reads as a PEM keystore) and password.
tls_create() {
  local dir=$1 tls=$1/tls
  need openssl openssl
  mkdir -p "$tls"
  (
    umask 077
    openssl rand -hex 24 >"$dir/password"
    tls_openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=flechtwerk test CA" \
      -keyout "$tls/ca.key" -out "$dir/ca.pem"
    tls_openssl req -newkey rsa:2048 -nodes -subj "/CN=localhost" -keyout "$tls/server.key" -out "$tls/server.csr"
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n' >"$tls/server.ext"
    tls_openssl x509 -req -in "$tls/server.csr" -CA "$dir/ca.pem" -CAkey "$tls/ca.key" -set_serial 1 -days 30 \
      -extfile "$tls/server.ext" -out "$tls/server.crt"
    cat "$tls/server.key" "$tls/server.crt" "$dir/ca.pem" >"$tls/server.pem"
  )
}

tls_openssl() {
  local output
  output=$(openssl "$@" 2>&1) || {
    printf '%s\n' "$output" >&2
    die "openssl $1 failed (its output is above)"
  }
}
