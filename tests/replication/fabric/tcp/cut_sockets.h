// SPDX-License-Identifier: Apache-2.0
// cut_sockets: the kernel drops what this process's sockets get from a host.
//
// Each adapter of a test has a loopback address of its own. Its TCP sockets get
// a filter that drops packets from some source addresses, so neither program
// is told anything, as with a cut cable. The kernel sends again what it dropped
// once the filter is gone; that takes real time (200 ms and more).
//
// Thread safety: one thread; no other one opens or closes sockets meanwhile.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_CUT_SOCKETS_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_CUT_SOCKETS_H_

#include <set>
#include <string>

namespace alpheus::testing {

// All IPv4 TCP sockets of this process that are bound to `host` ("127.0.0.1")
// drop packets from `cut_off` from now on, and packets from no other. So do the
// connections that a listener of them accepts later.
void DropPackets(const std::string& host, const std::set<std::string>& cut_off);

// Returns true if a peer has not acknowledged all packets that went out of a
// socket bound to `host`.
bool HasPacketsInFlight(const std::string& host);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_TCP_CUT_SOCKETS_H_
