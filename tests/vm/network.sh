# SPDX-License-Identifier: Apache-2.0
# network: three hosts with an RDMA adapter each (Soft-RoCE), in one guest, or
# in several: `hosts` names those that are here (0, 1, 2), `uplink` the interface
# behind which the others are. Sourced by guests' scripts.
#
# 6.1's rdma_rxe works in the first network namespace only, and what one address
# of a machine sends to another goes by lo, where no adapter is. So the local
# table is asked for what comes in by an interface, and behind the routes of the
# three addresses for what goes out: their traffic leaves by one veth pair, goes
# through a bridge, and comes in by another one.
#
# A read of 1 MiB is a burst of packets, of which none may be dropped for want of
# room: Soft-RoCE would begin again, and be dropped again. Its own packets have 4
# KiB where the interface's may have some more.
#
#   10.9.0.1 v0 -- p1 \
#   10.9.0.2 v1 -- p2 - bridge        adapters rxe0, rxe1, rxe2
#   10.9.0.3 v2 -- p3 /     \ uplink
set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
  net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1 \
  net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 \
  net.core.netdev_max_backlog=100000
ip link add bridge0 mtu 4200 type bridge
ip link set bridge0 up
ip rule add pref 300 lookup local
# Ports are named by the last number of their hosts' addresses.
if [ -n "${uplink:-}" ]; then
  ip link set "$uplink" mtu 4200 txqueuelen 10000 master bridge0 up
fi
for n in ${hosts:=0 1 2}; do
  port=p$((n + 1))
  address=10.9.0.$((n + 1)) table=$((100 + n))
  ip link add "v$n" mtu 4200 type veth peer name "$port" mtu 4200
  ip link set "$port" master bridge0 up
  ip address add "$address/24" dev "v$n"
  ip link set "v$n" up
  ip rule add pref $((10 + n)) iif "v$n" lookup local
  ip rule add pref $table from "$address" to 10.9.0.0/24 lookup $table
  ip route add 10.9.0.0/24 dev "v$n" src "$address" table $table
  ip route add local "$address" dev "v$n" table $table
done
ip rule del pref 0
for n in $hosts; do rdma link add "rxe$n" type rxe netdev "v$n"; done
export ALPHEUS_VERBS_ADDRESSES=10.9.0.1,10.9.0.2,10.9.0.3
# Ports whose file here holds 1 no longer reach each other, but reach all others
# as before: so one pair can be cut at a time. Packets vanish without an error.
export ALPHEUS_VERBS_PORTS='/sys/class/net/p*/brport/isolated'
set +e
