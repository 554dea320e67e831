# SPDX-License-Identifier: Apache-2.0
# whole_log: whole_log.sh PROGRAMS DEVICE: a cluster of three nodes on the
# adapters of network.sh, the last node's replica on the device-DAX of pmem.sh;
# a primary with a replica of its own writes, and what it wrote is read and
# verified on all three. Nothing is killed.
set -eu
programs=$1 device=$2
folder=$(mktemp -d /dev/shm/log-XXXXXX)
cd "$folder"
{
  echo 'cluster_id = "7c1a3c52-10f4-4c53-8c1f-6e1f2c0f9a11"'
  echo 'fabric = "verbs"'
  echo 'insecure_without_key = true'
  for n in 1 2 3; do
    printf '[[member]]\nnode = %s\naddress = "10.9.0.%s:7500"\n' $n $n
  done
} >cluster.toml
nodes=()
trap 'kill "${nodes[@]}"; wait; rm -rf "$folder"' EXIT
for n in 1 2 3; do
  mkdir node$n
  if ((n == 3)); then ln -s "$device" node3/main.alpheus; fi
  "$programs/alpheusd" --cluster cluster.toml --node $n --directory node$n \
    2>said$n &
  nodes+=($!)
done
for n in 1 2 3; do
  until grep -q "listens on" said$n; do sleep 0.1; done
  grep "fabric: verbs" said$n
done
alpheus() {
  local command=$1
  shift
  "$programs/alpheus" "$command" --cluster cluster.toml "$@"
}
alpheus format --size 16MiB
seq -f "record %.0f" 1 2000 >records
alpheus append --node 1 --file node1/main.alpheus <records
# The daemon has its file again a moment after the primary has ended.
until alpheus status >status; do sleep 0.2; done
cat status
# Of the connection manager's datagrams Soft-RoCE loses one now and then. The
# kernel sends it again after 4.3 s, and by then a reader may have given up.
is_verified=false
for try in 1 2 3; do
  if alpheus cat >shown && alpheus verify; then
    is_verified=true
    break
  fi
done
$is_verified
cmp shown records
