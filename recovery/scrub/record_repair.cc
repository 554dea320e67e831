// SPDX-License-Identifier: Apache-2.0
#include "recovery/scrub/record_repair.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/core/write/pad.h"
#include "log/format/epoch_table.h"

namespace alpheus::recovery {
namespace {

RepairedBytes Copied(Ring ring, RingOffset offset, uint64_t bytes) {
  const std::byte* const from = ring.At(offset);
  return {offset, {from, from + bytes}};
}

// Clears a CLEANED word that is not valid.
void TidyCleanedWord(const RecordView& record, RepairedBytes* repaired) {
  if (record.cleaned) return;
  std::memset(repaired->bytes.data() + offsetof(RecordHeader, cleaned), 0,
              sizeof(RecordHeader::cleaned));
}

// Joins places that follow each other, as each costs a fence.
void AddPlace(Ring ring, RepairedBytes bytes, RepairedRecords* repaired) {
  RepairedBytes* const last =
      repaired->places.empty() ? nullptr : &repaired->places.back();
  if (last == nullptr || last->offset + last->bytes.size() != bytes.offset ||
      ring.Place(bytes.offset) == 0) {
    repaired->places.push_back(std::move(bytes));
    return;
  }
  last->bytes.insert(last->bytes.end(), bytes.bytes.begin(), bytes.bytes.end());
}

// Checks the payload: cursors do not check that of a cleaned record.
bool IsWhole(const RecordView& record) {
  return PayloadIsValid(record.seed, record.header, record.payload);
}

// Returns true unless the own header holds and the peer's differs from it.
bool IsSameRecord(const RingScrub& scrub, const RecordView& record) {
  const ScrubFinding& finding = scrub.finding();
  if (finding.kind != RingDamage::kPayload) return true;
  return record.offset == finding.record &&
         LoadHeader(scrub.ring().At(finding.record)).header_crc() ==
             record.header.header_crc();
}

}  // namespace

RepairedRecords RepairedWithoutPeer(const RingScrub& scrub) {
  const ScrubFinding& finding = scrub.finding();
  if (finding.kind == RingDamage::kCleanedWord) {
    RepairedBytes word{finding.record + offsetof(RecordHeader, cleaned),
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

RepairedRecords RepairedFromPeer(Ring read, RingOffset read_end,
                                 const RingScrub& scrub) {
  const ScrubFinding& finding = scrub.finding();
  RecordCursor cursor(read, scrub.table(), finding.at,
                      std::min(read_end, finding.end_offset));
  RepairedRecords repaired;
  while (cursor.position().lsn < finding.end_lsn) {
    const RecordCursor::Step step = cursor.Next();
    if (step == RecordCursor::Step::kBadHeader) break;
    const RecordView& record = cursor.record();
    const bool is_good = step == RecordCursor::Step::kRecord &&
                         IsWhole(record) && IsSameRecord(scrub, record);
    if (!is_good) break;
    // A PAD that is damaged at the peer, too, is found again, and computed.
    if (cursor.record_begin() != record.offset && !cursor.pad_damaged()) {
      repaired.places.push_back(
          Copied(read, cursor.record_begin(), kRecordHeaderBytes));
    }
    RepairedBytes bytes = Copied(read, record.offset, record.bytes);
    TidyCleanedWord(record, &bytes);
    AddPlace(read, std::move(bytes), &repaired);
    ++repaired.records;
  }
  return repaired;
}

uint64_t ValidInFinding(const RingScrub& scrub, uint64_t records_max) {
  const ScrubFinding& finding = scrub.finding();
  const Ring& ring = scrub.ring();
  RecordCursor cursor(ring, scrub.table(), finding.at,
                      finding.at.offset + ring.capacity());
  uint64_t valid_records = 0;
  while (valid_records < records_max &&
         cursor.Next() == RecordCursor::Step::kRecord) {
    const HeaderWords& header = cursor.record().header;
    const bool is_repaired =
        finding.kind == RingDamage::kPad
            ? !cursor.pad_damaged()
            : header.cleaned() == 0 || cursor.record().cleaned;
    if (!is_repaired) break;
    ++valid_records;
  }
  return valid_records;
}

// --- PeerRing ----------------------------------------------------------------

PeerRing::PeerRing(fabric::Fabric& fabric, ControlCall::Options at,
                   uint64_t ring_capacity, const Range& first)
    : capacity_(ring_capacity),
      memory_(Region::Anonymous(capacity_, "a peer's ring")),
      read_end_(first.from),
      left_(first.bytes),
      peer_(fabric, std::move(at), Next()) {}

absl::Status PeerRing::status() const {
  if (!memory_.ok()) return memory_.status();
  if (!peer_.status().ok()) return peer_.status();
  if (!peer_.server_hello() ||
      peer_.server_hello()->ring_capacity == capacity_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("its ring has ", peer_.server_hello()->ring_capacity,
                   " bytes, that of this node ", capacity_,
                   "; replicas of one log have rings of one size"));
}

Fetch PeerRing::Next() const {
  return {read_end_,
          static_cast<uint32_t>(std::min<uint64_t>(left_, kFetchBytesMax))};
}

void PeerRing::Read(const Range& range) {
  read_end_ = range.from;
  left_ = range.bytes;
  peer_.Ask(Next());
}

bool PeerRing::OnCompletion(const fabric::Completion& completion) {
  if (!peer_.OnCompletion(completion)) return false;
  if (!is_reading() || !peer_.may_ask() || !status().ok()) return true;
  if (const absl::Status taken = OnReply(*peer_.reply()); !taken.ok()) {
    peer_.Fail(taken);
  } else if (is_reading()) {
    peer_.Ask(Next());
  }
  return true;
}

absl::Status PeerRing::OnReply(const Message& reply) {
  const Fetch asked = Next();
  const auto* fetched = std::get_if<Fetched>(&reply);
  if (fetched == nullptr || fetched->from != asked.from ||
      fetched->bytes.size() > asked.bytes) {
    return absl::DataLossError(
        "the node replied to a Fetch request with a message of another kind. "
        "The node is faulty: see its messages");
  }
  const std::span<const std::byte> bytes = fetched->bytes;
  const uint64_t first =
      std::min<uint64_t>(bytes.size(), ring().UntilEnd(asked.from));
  std::ranges::copy(bytes.first(first), ring().At(asked.from));
  std::ranges::copy(bytes.subspan(first), ring().data());
  has_answered_ = true;
  read_end_ = read_end_ + bytes.size();
  left_ = bytes.size() < asked.bytes ? 0 : left_ - bytes.size();
  return absl::OkStatus();
}

}  // namespace alpheus::recovery
