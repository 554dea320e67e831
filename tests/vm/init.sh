#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# init: the guest's first process. Loads the modules of the initramfs, puts an
# overlay over the host's root, which it sees read-only, and runs /guest.sh
# there; its exit status goes to the console.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do
  insmod "/modules/$module" || echo "guest: module $module was refused"
done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro host /host
mount -t tmpfs tmpfs /upper
mkdir /upper/changed /upper/work
mount -t overlay overlay \
  -o lowerdir=/host,upperdir=/upper/changed,workdir=/upper/work /mnt
mount -t proc proc /mnt/proc
mount -t sysfs sys /mnt/sys
mount -t devtmpfs dev /mnt/dev
ln -s /proc/self/fd /mnt/dev/fd
mkdir -p /mnt/dev/shm
for folder in run dev/shm; do mount -t tmpfs tmpfs "/mnt/$folder"; done
ip link set lo up
cp /guest.sh /mnt/run/guest.sh
chroot /mnt /bin/bash /run/guest.sh </dev/null
echo "guest-exit-status: $?"
poweroff -f
