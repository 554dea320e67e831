// SPDX-License-Identifier: Apache-2.0
// medium: what stands on a replica's modelled medium, written by hand, as no
// process of its own would write it.
#ifndef ALPHEUS_TESTS_TOOLS_SIM_WORLD_MEDIUM_H_
#define ALPHEUS_TESTS_TOOLS_SIM_WORLD_MEDIUM_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "log/core/ring/region_state.h"
#include "quorum/arithmetic/promise.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class Medium {
 public:
  explicit Medium(World::Machine& machine) : machine_(machine) {}

  RegionState State() const;
  Superline superline() const { return State().superline; }
  uint64_t seq() const;  // of the superline

  // Both copies, with the next number.
  void Change(const std::function<void(Superline&)>& change);
  void WriteSuperline(const Superline& superline, uint64_t seq);
  void WriteOneCopy(int copy, const Superline& superline, uint64_t seq);
  void Promise(const quorum::Promise& promise);
  // The table, and a superline that names it.
  void ChangeWithTable(const EpochTable& table,
                       const std::function<void(Superline&)>& change);
  // Writes what an installation writes last.
  void Install(const EpochEntry& entry);
  void WriteOneTableCopy(int copy);
  void Mark(int line, Epoch epoch, Lsn lsn);
  // The record at the head, which can be read, and where it lies.
  RecordView FirstRecord() const;
  const std::byte* BytesOf(const RecordView& record) const;
  // A record of that epoch, whose payload is that byte again and again.
  void WriteRecord(const EpochEntry& epoch, const LogPosition& at,
                   size_t payload_bytes, std::byte payload);
  // The first one that the epoch owns.
  void WriteFirstRecord(const EpochEntry& epoch, std::byte payload) {
    WriteRecord(epoch, {epoch.start_lsn, epoch.start_offset}, 40, payload);
  }
  // Bytes from there on, in the region, are others.
  void Damage(uint64_t offset, uint64_t bytes);

 private:
  World::Model& pmem() const { return *machine_.pmem; }

  World::Machine& machine_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TESTS_TOOLS_SIM_WORLD_MEDIUM_H_
