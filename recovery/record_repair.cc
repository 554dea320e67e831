// SPDX-License-Identifier: Apache-2.0
#include "recovery/record_repair.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "log/core/record_writer.h"
#include "log/format/epoch_table.h"

namespace alpheus {
namespace {

MendedBytes Copied(Ring ring, RingOffset offset, uint64_t bytes) {
  const std::byte* const from = ring.At(offset);
  return {offset, {from, from + bytes}};
}

// A word that is none of a cleaned record goes.
void TidyCleanedWord(const RecordView& record, MendedBytes* mended) {
  if (record.cleaned) return;
  std::memset(mended->bytes.data() + offsetof(RecordHeader, cleaned), 0,
              sizeof(RecordHeader::cleaned));
}

// One behind the other they are one place: each costs a fence.
void AddPlace(Ring ring, MendedBytes bytes, MendedRecords* mended) {
  MendedBytes* const last =
      mended->places.empty() ? nullptr : &mended->places.back();
  if (last == nullptr || last->offset + last->bytes.size() != bytes.offset ||
      ring.Place(bytes.offset) == 0) {
    mended->places.push_back(std::move(bytes));
    return;
  }
  last->bytes.insert(last->bytes.end(), bytes.bytes.begin(), bytes.bytes.end());
}

// Cursors trust the payload of what is cleaned.
bool IsWhole(const RecordView& record) {
  return PayloadIsValid(record.seed, record.header, record.payload);
}

// Where the own header holds the peer's must say the same.
bool IsSameRecord(const RingScrub& scrub, const RecordView& record) {
  const ScrubFinding& finding = scrub.finding();
  if (finding.kind != RingDamage::kPayload) return true;
  return record.offset == finding.record &&
         LoadHeader(scrub.ring().At(finding.record)).header_crc() ==
             record.header.header_crc();
}

absl::StatusOr<std::unique_ptr<RegisteredBytes>> Registered(
    Fabric& fabric, absl::StatusOr<Region>& memory) {
  ALPHEUS_RETURN_IF_ERROR(memory.status());
  return RegisteredBytes::Make(fabric, memory->bytes(), RemoteAccess::kNone);
}

}  // namespace

MendedRecords MendedWithoutPeer(const RingScrub& scrub) {
  const ScrubFinding& finding = scrub.finding();
  if (finding.kind == RingDamage::kCleanedWord) {
    MendedBytes word{finding.record + offsetof(RecordHeader, cleaned),
                     std::vector<std::byte>(sizeof(RecordHeader::cleaned))};
    return {{std::move(word)}, 1};
  }
  if (finding.kind != RingDamage::kPad) return {};
  const EpochEntry* const owner = scrub.table().Owner(finding.at.lsn);
  const RecordHeader pad =
      MakePad(scrub.ring(), scrub.table().KeyOf(owner), owner->epoch,
              finding.at.lsn, Lsn(0), finding.at.offset);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&pad, 1));
  return {{{finding.at.offset, {bytes.begin(), bytes.end()}}}, 1};
}

MendedRecords MendedFromPeer(Ring read, RingOffset read_end,
                             const RingScrub& scrub) {
  const ScrubFinding& finding = scrub.finding();
  RecordCursor cursor(read, scrub.table(), finding.at,
                      std::min(read_end, finding.end_offset));
  MendedRecords mended;
  while (cursor.position().lsn < finding.end_lsn) {
    const RecordCursor::Step step = cursor.Next();
    if (step == RecordCursor::Step::kBadHeader) break;
    const RecordView& record = cursor.record();
    const bool is_good = step == RecordCursor::Step::kRecord &&
                         IsWhole(record) && IsSameRecord(scrub, record);
    if (!is_good && !IsMutant("kScrubTrustsThePeer")) break;
    // A PAD that can't be read there either is found again, and made anew.
    if (cursor.record_begin() != record.offset && !cursor.pad_damaged()) {
      mended.places.push_back(
          Copied(read, cursor.record_begin(), kRecordHeaderBytes));
    }
    MendedBytes bytes = Copied(read, record.offset, record.bytes);
    TidyCleanedWord(record, &bytes);
    AddPlace(read, std::move(bytes), &mended);
    ++mended.records;
  }
  return mended;
}

uint64_t HeldOfFinding(const RingScrub& scrub, uint64_t records_max) {
  const ScrubFinding& finding = scrub.finding();
  const Ring& ring = scrub.ring();
  RecordCursor cursor(ring, scrub.table(), finding.at,
                      finding.at.offset + ring.capacity());
  uint64_t held = 0;
  while (held < records_max && cursor.Next() == RecordCursor::Step::kRecord) {
    const HeaderWords& header = cursor.record().header;
    const bool is_mended =
        finding.kind == RingDamage::kPad
            ? !cursor.pad_damaged()
            : header.cleaned() == 0 || cursor.record().cleaned;
    if (!is_mended) break;
    ++held;
  }
  return held;
}

// --- PeerRing ----------------------------------------------------------------

PeerRing::PeerRing(Fabric& fabric, Inquiry::Options at, uint32_t replica_count,
                   uint32_t write_quorum, uint64_t ring_capacity)
    : capacity_(ring_capacity),
      memory_(Region::Anonymous(capacity_, "a peer's ring")),
      registered_(Registered(fabric, memory_)),
      peer_(fabric, std::move(at), replica_count, write_quorum) {}

absl::Status PeerRing::status() const {
  if (!registered_.ok()) return registered_.status();
  if (!peer_.status().ok()) return peer_.status();
  if (!peer_.said() || peer_.ring_capacity() == capacity_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("its ring has ", peer_.ring_capacity(), " bytes, the own ",
                   capacity_, "; replicas of one log have rings of one size"));
}

void PeerRing::Read(RingOffset from, uint64_t bytes) {
  read_end_ = from + bytes;
  peer_.Read(**registered_, from, bytes);
}

}  // namespace alpheus
