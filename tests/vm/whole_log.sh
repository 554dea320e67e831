# SPDX-License-Identifier: Apache-2.0
# whole_log: whole_log.sh PROGRAMS DEVICE: a cluster of three nodes on the
# adapters of network.sh, the last node's replica on the device-DAX of pmem.sh,
# the others' on its ext4-DAX, which Soft-RoCE can't register; a primary with a
# replica of its own writes, and what it wrote is read, scrubbed and verified on
# all three, also when all have been started again. Nothing is killed.
set -eu
programs=$1 device=$2
folder=$(mktemp -d /dev/shm/log-XXXXXX)
cd "$folder"
{
  echo 'cluster_id = "7c1a3c52-10f4-4c53-8c1f-6e1f2c0f9a11"'
  echo 'fabric = "verbs"'
  echo 'insecure_without_key = true'
  # One that is slow when the log is opened must have the records, too.
  echo 'write_quorum = 3'
  for n in 1 2 3; do
    printf '[[member]]\nnode = %s\naddress = "10.9.0.%s:7500"\n' $n $n
  done
} >cluster.toml
mkdir /pmem/node1 /pmem/node2 node3
ln -s /pmem/node1 /pmem/node2 .
ln -s "$device" node3/main.alpheus
nodes=()
trap 'kill "${nodes[@]}"; wait; rm -rf "$folder" /pmem/node1 /pmem/node2' EXIT
start() {
  nodes=()
  for n in 1 2 3; do
    "$programs/alpheusd" --cluster cluster.toml --node $n --directory node$n \
      2>said$n &
    nodes+=($!)
  done
  for n in 1 2 3; do
    until grep -q "listens on" said$n; do sleep 0.1; done
    grep "fabric: verbs" said$n
  done
}
start
alpheus() {
  local command=$1
  shift
  "$programs/alpheus" "$command" --cluster cluster.toml "$@"
}
# An emulated guest may keep a node from its processor for longer than others
# wait for its answer by default.
patience="--timeout-ms 240000"
alpheus format $patience --size 16MiB
seq -f "record %.0f" 1 2000 >records
alpheus append --open-timeout-ms 240000 --ack-timeout-ms 240000 --node 1 \
  --file node1/main.alpheus <records 2>appended
cat appended
# The daemon has its file again a moment after the primary has ended.
until alpheus status --all $patience >status; do sleep 0.2; done
cat status
verify() {
  alpheus cat $patience >shown
  alpheus verify $patience
  alpheus scrub $patience
  cmp shown records
}
verify
# The node chooses this and reports it only where the adapter can't register the
# replica.
landing="can't be registered (.*): peers' writes are received in [0-9]* MiB"
for said in said1 said2 appended; do grep "$landing" $said; done
if grep "$landing" said3; then exit 1; fi
# From here on, reads return what the files held.
kill "${nodes[@]}"
wait
start
until alpheus status --all $patience >status; do sleep 0.2; done
verify
