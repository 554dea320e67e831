// SPDX-License-Identifier: Apache-2.0
// world: some hosts on one fabric, as the conformance suite sees them.
//
// The suite posts, then calls Pass until what it waits for has come; it never
// sleeps and reads no clock, so that it runs in virtual and in real time alike.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_WORLD_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "replication/fabric/fabric.h"

namespace alpheus::testing {

// Zeroed memory on a multiple of 8; it outlives its world as long as `owner`.
struct WorldMemory {
  std::shared_ptr<void> owner;
  std::span<std::byte> bytes;
};

class FabricWorld {
 public:
  virtual ~FabricWorld() = default;

  virtual int hosts() const = 0;  // 3 at least
  // Requires: 0 <= host < hosts().
  virtual fabric::Fabric& fabric(int host) = 0;
  // An address that `host` may listen on; the suite uses what Listen returns.
  virtual std::string ListenAddress(int host) = 0;
  // An address of `host` where nobody listens.
  virtual std::string UnusedAddress(int host) = 0;

  // Memory of the host's, for a region that peers may use so.
  virtual WorldMemory Memory(int /*host*/, uint64_t bytes,
                             fabric::RemoteAccess /*access*/) {
    const uint64_t words = (bytes + 7) / 8;
    std::shared_ptr<uint64_t[]> owner(new uint64_t[words]());
    return {owner, {reinterpret_cast<std::byte*>(owner.get()), bytes}};
  }

  // False: they say no more than FB8.
  virtual bool CompletedWritesAreVisible() const { return true; }

  // The clock on which the fabrics' deadlines count.
  virtual int64_t NowNanos() = 0;

  // Lets something happen: virtual time goes on, or the hosts' adapters make
  // progress. It does not Poll any fabric. False when nothing is in flight, so
  // that waiting on would be for ever.
  virtual bool Pass() = 0;

  // From now on nothing passes between the two hosts, in both directions, until
  // Heal; neither is told.
  virtual void Cut(int host, int other) = 0;
  virtual void Heal(int host, int other) = 0;
};

using MakeFabricWorld = std::function<std::unique_ptr<FabricWorld>()>;

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_WORLD_H_
