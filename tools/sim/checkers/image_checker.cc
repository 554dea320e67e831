// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/image_checker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
ImageChecker::ImageChecker(World& world, Ring ring, const RingLogStart& start)
    : world_(world),
      ring_(ring),
      table_(start.table),
      epoch_(start.superline.log_epoch),
      position_(start.end),
      in_sync_position_(start.end) {}

void ImageChecker::OnDurable(Lsn lsn) {
  ForEachUpTo(lsn, &position_,
              [this](const RecordView& record, const LogPosition& behind) {
                Check(record, behind);
              });
}

void ImageChecker::OnInSync(Lsn head, Lsn lsn, int in_sync) {
  ForEachUpTo(
      lsn, &in_sync_position_,
      [this, head, in_sync](const RecordView& record, const LogPosition&) {
        if (record.lsn() < std::max(head, world_.history().chosen_end())) {
          return;
        }
        const uint64_t bytes = kRecordHeaderBytes + record.payload.size();
        // An ack may be taken after its replica was rolled back.
        const int holders =
            Holders(record.offset, bytes, /*with_rolled_back=*/true);
        if (holders >= in_sync) return;
        world_.oracle().Violate(
            "RSK4",
            absl::StrCat("LSN ", record.lsn().value, " of epoch ",
                         record.epoch().value, " is said to be on all ",
                         in_sync, " replicas in sync, and is on ", holders));
      });
}

void ImageChecker::ForEachUpTo(
    Lsn lsn, LogPosition* position,
    absl::FunctionRef<void(const RecordView&, const LogPosition&)> visit) {
  if (position->lsn > lsn) return;
  RecordCursor cursor(ring_, table_, *position,
                      position->offset + ring_.capacity());
  world_.checkers().epochs.CheckNews();
  while (cursor.position().lsn <= lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      world_.oracle().Violate(
          "P-INV-22",
          absl::StrCat("LSN ", cursor.position().lsn.value,
                       " counts as durable, and is no record in the "
                       "primary's own ring"));
      return;
    }
    visit(cursor.record(), cursor.position());
  }
  *position = cursor.position();
}

// Records that a later epoch has shown may be cleaned and overwritten by now,
// while this primary, paused, still processes old acknowledgements.
void ImageChecker::Check(const RecordView& record, const LogPosition& behind) {
  if (record.lsn() < world_.history().chosen_end()) return;
  ++world_.counters().records_checked;
  // Behind the payload lies what nobody reads.
  const uint64_t bytes = kRecordHeaderBytes + record.payload.size();
  const int holders = Holders(record.offset, bytes, /*with_rolled_back=*/false);
  const ConfigurationChecker& configurations = world_.checkers().configurations;
  const int needed = configurations.WriteQuorumOf(configurations.Of(epoch_));
  if (holders >= needed) {
    world_.checkers().durability.Learn(record, ring_.At(record.offset), epoch_);
    world_.checkers().owners.ChainKnown(behind);
    return;
  }
  world_.oracle().Violate(
      "P-INV-22", absl::StrCat("LSN ", record.lsn().value, " of epoch ",
                               record.epoch().value,
                               " counts as durable, and is "
                               "on ",
                               holders, " media of members, of ", needed));
}

int ImageChecker::Holders(RingOffset offset, uint64_t bytes,
                          bool with_rolled_back) const {
  int holders = 0;
  const std::byte* const own = ring_.At(offset);
  const uint64_t at = world_.layout().ring_offset + ring_.Place(offset);
  for (const World::Machine& machine : world_.machines()) {
    const RegionStore& store = world_.store();
    const bool has =
        IsHolder(machine, own, at, bytes) ||
        WasHolder(store.before(machine.number), machine, own, at, bytes) ||
        (with_rolled_back &&
         WasHolder(store.rolled_back(machine.number), machine, own, at, bytes));
    holders += has ? 1 : 0;
  }
  return holders;
}

// A medium being repaired for a later epoch keeps durable records; for the
// primary's own epoch it has not installed it yet (P-INV-12).
bool ImageChecker::IsHolder(const World::Machine& machine, const std::byte* own,
                            uint64_t at, uint64_t bytes) const {
  const auto* const medium = world_.store().medium(machine.number);
  const ConfigurationChecker& configurations = world_.checkers().configurations;
  if (medium == nullptr ||
      !configurations.IsMember(configurations.Of(epoch_), machine.number)) {
    return false;
  }
  if (world_.checkers().epochs.log_epoch(machine.number) < epoch_) return false;
  return AreOneRecord(own, world_.Medium(machine.number).data() + at, bytes);
}

// A storage fault came between its acknowledgement and now. A fence that failed
// may have made it suspect since, as far as that wears the flag of a repair.
bool ImageChecker::WasHolder(std::span<const RegionStore::Before> before,
                             const World::Machine& machine,
                             const std::byte* own, uint64_t at,
                             uint64_t bytes) const {
  const Configuration& members = world_.checkers().configurations.Of(epoch_);
  return std::ranges::any_of(before, [&](const RegionStore::Before& was) {
    return was.log_epoch >= epoch_ &&
           Names(members, {machine.id(), was.incarnation}) &&
           AreOneRecord(own, was.image.data() + at, bytes);
  });
}

}  // namespace alpheus::sim
