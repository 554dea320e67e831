// SPDX-License-Identifier: Apache-2.0
// region_table: the regions of an adapter in software, and the checks of
// operations on them.
//
// Idea: every fabric without an adapter in silicon asks the three questions of
// FB4 (key, bounds, access) in this one place.
//
// Invariants (FB4, FB7 of fabric.h):
//   1. A key can't be predicted, is never 0 and never issued twice. Nothing
//      is remembered of void keys (key_sequence.h).
//   2. The bytes that Find returns lie inside the registered region, whatever
//      offset and length a peer sent, also when their sum overflows.
//   3. An operation of no bytes touches nothing: key and offset are not
//      checked.
// The table answers for the moment of the call. A fabric that lands bytes in
// steps asks again before each step, so that Deregister is a fence (FB5).
// Thread safety: none; the fabric's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_REGION_TABLE_H_
#define ALPHEUS_REPLICATION_FABRIC_REGION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/key_sequence.h"

namespace alpheus::fabric {

class RegionTable {
 public:
  // Draws the secret of the keys from `random`: use an unpredictable one
  // (EntropyRandom), or a seeded one in tests.
  explicit RegionTable(RandomSource& random) : keys_(random) {}

  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Registers a region. Errors: InvalidArgument (empty; kAll and not on a
  // multiple of 8).
  absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                     RemoteAccess access);
  // Errors: NotFound.
  absl::Status Deregister(RegionKey key);

  // Returns true until the key is deregistered.
  bool Holds(RegionKey key) const { return regions_.contains(key); }

  // Returns the bytes at `address` for a peer's operation that needs `needed`:
  // kRead for a read or a flush, kWrite for a write, kAll for an atomic.
  // Errors: PermissionDenied (key, bounds, access): kRemoteAccess to the peer.
  absl::StatusOr<std::span<std::byte>> Find(RemoteAddress address,
                                            uint64_t bytes,
                                            RemoteAccess needed) const;

  // Returns OK if an operation of this host may use these bytes, with any
  // access. Errors: InvalidArgument (unknown key, bytes outside its region).
  absl::Status CheckLocal(const LocalBytes& local) const;

 private:
  struct Region {
    std::span<std::byte> bytes;
    RemoteAccess access = RemoteAccess::kNone;
  };

  KeySequence keys_;
  std::map<RegionKey, Region> regions_;
};

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_REGION_TABLE_H_
