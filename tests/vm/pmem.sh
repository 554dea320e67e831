# SPDX-License-Identifier: Apache-2.0
# pmem: the guest's persistent memory: /dev/pmem0 with ext4 on DAX at /pmem, and
# a device-DAX, $dax, and one more for each NVDIMM from the third on, /dev/dax2.0
# and so on. Content that was there stays. Sourced by guests' scripts.
set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
if ! ls /dev/dax1.* >/dev/null 2>&1; then  # new modules
  ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem >/dev/null
  for nvdimm in /sys/bus/nd/devices/namespace[1-9].0; do
    ndctl create-namespace -f -e "${nvdimm##*/}" -m devdax -M mem >/dev/null
  done
fi
mkdir -p /pmem
blkid /dev/pmem0 >/dev/null || mkfs.ext4 -q -b 4096 /dev/pmem0
mount -o dax=always /dev/pmem0 /pmem
dax=$(ls /dev/dax1.*)
set +e
