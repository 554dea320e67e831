// SPDX-License-Identifier: Apache-2.0
// zookeeper_client: znodes of Apache ZooKeeper, and the only door to its C
// client.
//
// Idea: the single-threaded client (libzookeeper-st) fits the poll rule: it
// says which descriptor it waits for and until when, and does its work when it
// is called. So a process that hangs loses its session by itself, and no
// callback runs on another thread. Only asynchronous calls are used, and none
// with known faults: zoo_set_servers, zoo_remove_watches, the recipes. Other
// servers take another object.
//
// Invariants:
//   ZK1. Calls into the library are under one lock of the process, since all
//        handles share some state. The end that waits (ZK3) is not under it: of
//        that state it uses only a counter of requests, and a number that is
//        given twice does no harm.
//   ZK2. An error that is neither an answer nor a lost connection ends the
//        session.
//   ZK3. Nothing blocks, except the end of an object. It blocks if its session
//        has made ephemeral znodes, is connected, and was heard lately: the
//        server is told to delete them. The end waits up to 3 s while the
//        socket takes no bytes, then up to 1.5 s for the answer. An earlier
//        session of the object does not count, and neither do znodes that are
//        gone (Znodes::ForgetEphemerals).
//   ZK4. A descriptor that the library may have closed is not touched: its
//        number may be another file's. Child processes inherit none.
//   ZK5. A session whose connection is lost while a request is sent is
//        kSuspended at once, although the library tells nobody.
//   ZK6. A poll of a connected session that has nothing to do takes a few
//        system calls: no name is looked up.
//   ZK7. A session with a time-out that no server grants ends. The library
//        would wait for a part of it, which is hours, before it connects again.
// Crash states: none; it writes nothing that outlives the process. The library
// believes the bytes that a server sends, and may end the process over bytes
// that no server sends: its addresses belong to trusted servers.
// Where the library is missing, zookeeper_absent.cc takes the place of this
// one, and OpenZookeeper fails. Thread safety: one thread for each object.
// References: znodes.h; docs/design/zookeeper.md.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZOOKEEPER_CLIENT_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZOOKEEPER_CLIENT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "quorum/members/configuration.h"
#include "quorum/membership/zookeeper/znodes.h"

namespace alpheus::quorum {

// Returns whether this program has a client.
bool HasZookeeperClient();

// Begins a session; connecting goes on in Poll. `clock` must outlive it.
// `service.servers` have numbers for hosts, or this may wait for a name server.
// Errors: Unimplemented (there is no client in this program); Internal (the
// client can't be made). May block: with the names of hosts, and at the end of
// the object (ZK3).
absl::StatusOr<std::unique_ptr<Znodes>> OpenZookeeper(
    const ZookeeperService& service, const Clock& clock);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZOOKEEPER_CLIENT_H_
