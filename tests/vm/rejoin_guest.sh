# SPDX-License-Identifier: Apache-2.0
# rejoin_guest: the shell of both guests of rejoin.py: two clusters of the same
# three hosts, and what is asked of them. Sourced by guests' scripts, behind
# network.sh.
mkdir -p /run/rejoin
cd /run/rejoin

# cluster NAME W PORT: its file.
cluster() {
  printf '%s\n' "cluster_id = \"7c1a3c52-10f4-4c53-8c1f-6e1f2c0f9a1$2\"" \
    'fabric = "verbs"' 'insecure_without_key = true' "write_quorum = $2" \
    >"$1.toml"
  local n
  for n in 1 2 3; do
    printf '[[member]]\nnode = %s\naddress = "10.9.0.%s:%s"\n' $n $n "$3" \
      >>"$1.toml"
  done
}
cluster majority 2 7500
cluster all 3 7600

alpheus() { "$programs/alpheus" "$@"; }

# An emulated guest may keep a node from its processor for longer than others
# wait for its answer by default. A backup whose power is cut is not waited for:
# its adapter does not answer, and the connection breaks within two seconds.
patience_ms=240000
patience="--timeout-ms $patience_ms"

# format CLUSTER LOG: its replicas.
format() {
  alpheus format $patience --cluster "$1.toml" --log "$2" --size 8MiB
}

# medium CLUSTER DEVICE: where the backup has log devdax.
medium() {
  mkdir -p "/pmem/${1}3" && ln -s "$2" "/pmem/${1}3/devdax.alpheus"
}

# node CLUSTER NUMBER FOLDER: a daemon, below that folder.
node() {
  mkdir -p "$3$1$2"
  echo $BASHPID >"$1$2.pid"
  exec "$programs/alpheusd" --cluster "$1.toml" --node "$2" --directory "$3$1$2"
}

# feed WRITER: endless records of a writer, up to numbers that are read; `end`
# ends them. Their length differs; rejoin_oracle.py knows each by its number.
feed() {
  local number=0 upto
  while read -r upto && [ "$upto" != end ]; do
    for (( ; number < upto; number++)); do
      printf 'record %s.%d %0*d\n' "$1" $number $((number * 37 % 900 + 1)) \
        $number
    done
  done
}

# stream WRITER CLUSTER LOG NODE FILE: a primary with that node's replica.
stream() {
  alpheus append --open-timeout-ms $patience_ms --ack-timeout-ms $patience_ms \
    --ack --threads 4 --cluster "$2.toml" --log "$3" --node "$4" --file "$5" \
    < <(feed "$1")
}

# held ARGUMENTS: which records `alpheus cat` shows, and a digest of their
# bytes. Fails where it shows a lower bound only, as a member is missing.
held() {
  alpheus cat "$@" >shown 2>said || { cat said; return 1; }
  cat said
  if grep -q "may have been acknowledged, too" said; then return 1; fi
  cut -d' ' -f2 shown | paste -sd' ' | fold -sw 1000 | sed 's/^/held /'
  echo "digest $(sha256sum <shown | cut -d' ' -f1)"
}
