// SPDX-License-Identifier: Apache-2.0
// registered_memory: the memory of this process that one adapter may touch.
//
// Idea: the adapter asks the three questions of FB4. This class keeps what own
// operations need to name their bytes, and ends each registration.
//
// Invariants:
//   1. No region is registered with relaxed ordering: a receive or a flush
//      would say nothing of the writes before it (P-R4).
//   2. When Deregister has returned the adapter touches the region no more: its
//      memory region has been destroyed (FB5). An error state of queue pairs
//      would not do.
//   3. A key grants FLUSH only if the adapter took the region for persistent
//      memory, and peers may read it.
// Thread safety: none; the fabric's lock guards it.
// References: ibv_reg_mr(3); protocol P-B0.5, P-B0.6, P-R2, P-R4.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_REGISTERED_MEMORY_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_REGISTERED_MEMORY_H_

#include <array>
#include <cstddef>
#include <map>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/device_news.h"
#include "replication/fabric/verbs/handles.h"
#include "replication/fabric/verbs/region_key_parts.h"

namespace alpheus::fabric::verbs {

class RegisteredMemory {
 public:
  // `domain` must outlive the object.
  RegisteredMemory(ibv_pd* domain, bool pages_on_demand, RandomSource& random,
                   bool native_flush = false)
      : domain_(domain),
        pages_on_demand_(pages_on_demand),
        native_flush_(native_flush),
        tags_(random) {}

  // Sets the news, which must outlive the object. An adapter that was taken
  // away keeps no region.
  void set_news(DeviceNews* news) { news_ = news; }

  // Errors: as Fabric::Register.
  absl::StatusOr<RegionKey> Register(std::span<std::byte> bytes,
                                     RemoteAccess access);
  absl::Status Deregister(RegionKey key);

  // Returns own bytes as a work request names them; no bytes: all zeros.
  // Errors: InvalidArgument (unknown key, bytes outside its region).
  absl::StatusOr<ibv_sge> Name(const LocalBytes& local) const;
  // Does what Name does, but returns false instead of an error.
  bool TryName(const LocalBytes& local, ibv_sge* name) const;

 private:
  struct Region {
    MemoryRegion handle;
    std::span<std::byte> bytes;
    ibv_sge name = {};  // name of the first byte, without a length
  };
  struct Known {
    RegionKey key;
    const Region* region = nullptr;
  };

  // Finds a region. Each post asks, in turns for one of a few.
  const Region* Find(RegionKey key) const;

  ibv_pd* const domain_;
  DeviceNews* news_ = nullptr;
  const bool pages_on_demand_;
  const bool native_flush_;
  RegionTags tags_;
  std::map<RegionKey, Region> regions_;
  // Recent regions: those asked for most are in front, and the last one is
  // forgotten first. Not indexed by the bits of the key: two that are asked for
  // in turns could share a place.
  mutable std::array<Known, 8> known_;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_REGISTERED_MEMORY_H_
