// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/backup_composer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/core/ring/region_state.h"
#include "log/format/atomic_cell.h"
#include "log/format/checksum.h"

namespace alpheus {
namespace {

constexpr uint64_t kFirstSeq = 1;

absl::Status Refuse(const BackupSubject& subject, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "backup of log ", subject.log_id.ToString(), ", LSN ",
      subject.head_lsn.value, " to ", subject.end_lsn.value, ": ", why));
}

// Leaves out the epochs that own none of the records. The last one that begins
// at the end's next LSN stays: it is the log's epoch.
void KeepEpochs(BackupSubject* subject) {
  std::vector<EpochStart>& epochs = subject->epochs;
  std::erase_if(epochs, [&](const EpochStart& epoch) {
    return epoch.start_lsn > subject->end_lsn + 1;
  });
  const auto owns_none = [&](size_t i) {
    return i + 1 < epochs.size() &&
           epochs[i + 1].start_lsn <=
               std::max(subject->head_lsn, epochs[i].start_lsn);
  };
  std::vector<EpochStart> kept;
  for (size_t i = 0; i < epochs.size(); ++i) {
    if (!owns_none(i)) kept.push_back(epochs[i]);
  }
  epochs = std::move(kept);
}

absl::Status CheckOrder(const BackupSubject& subject) {
  const std::vector<EpochStart>& epochs = subject.epochs;
  for (size_t i = 1; i < epochs.size(); ++i) {
    if (epochs[i - 1].epoch < epochs[i].epoch &&
        epochs[i - 1].start_lsn <= epochs[i].start_lsn) {
      continue;
    }
    return Refuse(subject, absl::StrCat("epoch ", epochs[i].epoch.value,
                                        " is not after the one before it"));
  }
  return absl::OkStatus();
}

absl::Status CheckOwners(const BackupSubject& subject) {
  const std::vector<EpochStart>& epochs = subject.epochs;
  const bool has_records = subject.end_lsn >= subject.head_lsn;
  if (has_records &&
      (epochs.empty() || epochs.front().start_lsn > subject.head_lsn)) {
    return Refuse(subject, "no epoch owns the first record");
  }
  if (epochs.size() > kEpochTableCapacity) {
    return Refuse(subject, absl::StrCat(epochs.size(), " epochs, at most ",
                                        kEpochTableCapacity, " fit"));
  }
  return absl::OkStatus();
}

void PutCell(const CellPlace& place, std::span<const std::byte> content) {
  for (int copy = 0; copy < 2; ++copy) {
    const std::vector<std::byte> bytes =
        EncodeCellCopy(place, copy, kFirstSeq, content);
    std::memcpy(place.copies[static_cast<size_t>(copy)], bytes.data(),
                bytes.size());
  }
}

}  // namespace

bool IsBackup(const Superline& superline) {
  const Configuration& configuration = superline.configuration;
  return superline.node == NodeId(0) && configuration.replica_count == 1 &&
         !Names(configuration, {superline.node, superline.incarnation});
}

absl::StatusOr<BackupComposer> BackupComposer::Begin(BackupSubject subject,
                                                     RandomSource& random) {
  if (subject.head_lsn == Lsn(0) || subject.end_lsn.value > kLsnMax ||
      subject.end_lsn + 1 < subject.head_lsn) {
    return Refuse(subject, "no log has such a head and end");
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const Layout layout,
      Layout::ForRing(subject.ring_capacity, kEpochTableCapacity));
  ALPHEUS_RETURN_IF_ERROR(CheckOrder(subject));
  KeepEpochs(&subject);
  ALPHEUS_RETURN_IF_ERROR(CheckOwners(subject));
  BackupComposer composer(std::move(subject), layout);
  for (size_t i = 0; i < composer.subject_.epochs.size(); ++i) {
    composer.nonces_.push_back(random.Next());
  }
  composer.member_incarnation_ = random.Next() | 1;
  composer.incarnation_ = composer.member_incarnation_ ^ 2;
  // LSN 1 is the only record that starts at offset 0.
  const Lsn head = composer.subject_.head_lsn;
  composer.head_offset_ = RingOffset(head == Lsn(1) ? 0 : layout.ring_capacity);
  composer.at_ = {head, composer.head_offset_, 0};
  composer.table_ = EpochTable::Empty(composer.subject_.log_id);
  composer.EnterEpochs();
  return composer;
}

void BackupComposer::EnterEpochs() {
  const size_t entered = table_.entries().size();
  for (size_t i = entered; i < subject_.epochs.size(); ++i) {
    const EpochStart& epoch = subject_.epochs[i];
    if (epoch.start_lsn > at_.lsn) return;
    table_ = table_.With(
        {epoch.epoch, nonces_[i], epoch.start_lsn, at_.offset, at_.chain},
        subject_.head_lsn);
  }
}

absl::Status BackupComposer::Add(Lsn lsn, Epoch epoch,
                                 std::span<const std::byte> payload,
                                 Sink sink) {
  if (lsn < at_.lsn || lsn > subject_.end_lsn) {
    return Refuse(subject_, absl::StrCat("LSN ", lsn.value, " came where LSN ",
                                         at_.lsn.value, " is next"));
  }
  ALPHEUS_RETURN_IF_ERROR(AbortUntil(lsn, sink));
  const EpochEntry* const owner = table_.Owner(lsn);
  if (owner == nullptr || owner->epoch != epoch) {
    return Refuse(
        subject_,
        absl::StrCat("LSN ", lsn.value, " is of epoch ", epoch.value,
                     ", but epoch ", owner == nullptr ? 0 : owner->epoch.value,
                     " owns it"));
  }
  return Put(RecordType::kData, payload, sink);
}

absl::Status BackupComposer::AbortUntil(Lsn lsn, Sink sink) {
  while (at_.lsn < lsn) {
    ALPHEUS_RETURN_IF_ERROR(Put(RecordType::kAborted, {}, sink));
  }
  return absl::OkStatus();
}

absl::Status BackupComposer::Put(RecordType type,
                                 std::span<const std::byte> payload,
                                 Sink sink) {
  const uint64_t place = at_.offset - head_offset_;
  const uint64_t bytes = RecordBytes(payload.size());
  if (bytes > layout_.ring_capacity - place) {
    return Refuse(
        subject_,
        absl::StrCat("LSN ", at_.lsn.value, " of ", payload.size(),
                     " bytes does not fit a ring of ", layout_.ring_capacity));
  }
  const EpochEntry* const owner = table_.Owner(at_.lsn);
  const uint64_t seed = table_.KeyOf(owner).Seed(at_.lsn, at_.offset);
  RecordHeader header{};
  header.lsn = at_.lsn.value;
  header.epoch = owner->epoch.value;
  header.durable_lsn = subject_.end_lsn.value;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  header.magic = kRecordMagic;
  header.type = static_cast<uint8_t>(type);
  if (type == RecordType::kData) {
    header.payload_crc = PayloadChecksum(seed, Crc32c(kCrcStart, payload));
  }
  header.header_crc = HeaderChecksum(seed, header);
  record_.assign(bytes, std::byte{0});
  std::memcpy(record_.data(), &header, sizeof(header));
  if (!payload.empty()) {
    std::memcpy(record_.data() + kRecordHeaderBytes, payload.data(),
                payload.size());
  }
  ALPHEUS_RETURN_IF_ERROR(sink(layout_.ring_offset + place, record_));
  last_ = {at_.offset, at_.chain};
  at_ = {at_.lsn + 1, at_.offset + bytes,
         ExtendChain(at_.chain, header.header_crc)};
  EnterEpochs();
  return absl::OkStatus();
}

Superline BackupComposer::MakeSuperline() const {
  Superline superline;
  superline.log_id = subject_.log_id;
  superline.node = NodeId(0);
  superline.incarnation = incarnation_;
  superline.region_bytes = layout_.region_bytes;
  superline.ring_offset = layout_.ring_offset;
  superline.ring_capacity = layout_.ring_capacity;
  superline.table_capacity = layout_.table_capacity;
  // All of it is durable, so one replica proves it.
  superline.configuration.members = {{NodeId(0), member_incarnation_}};
  if (!table_.entries().empty()) {
    superline.log_epoch = table_.entries().back().epoch;
  }
  superline.promised_epoch = superline.log_epoch;
  superline.table_seq = kFirstSeq;
  superline.head_lsn = subject_.head_lsn;
  superline.head_offset = head_offset_;
  superline.ceiling = at_.offset;
  return superline;
}

absl::Status BackupComposer::Finish(Sink sink) {
  ALPHEUS_RETURN_IF_ERROR(AbortUntil(subject_.end_lsn + 1, sink));
  std::vector<std::byte> fixed(layout_.ring_offset);
  const std::span<std::byte> region(fixed);
  const Superline superline = MakeSuperline();
  PutCell(EpochTablePlace(region, superline), table_.Encode());
  Watermark mark;
  if (at_.lsn > subject_.head_lsn) {
    mark = {superline.log_epoch, subject_.end_lsn, last_};
  }
  for (int line = 0; line < 2; ++line) {
    const WatermarkFormat encoded =
        EncodeWatermark(subject_.log_id, line, line == 0 ? mark : Watermark());
    std::memcpy(WatermarkLine(region, line), &encoded, sizeof(encoded));
  }
  *CleanCloseAddress(region) = CleanCloseWord(subject_.log_id, kFirstSeq);
  PutCell(SuperlinePlace(region), EncodeSuperline(superline));
  // The superline's pages come first in the region, and go last (BKC5).
  for (uint64_t end = fixed.size(); end > 0; end -= kPageBytes) {
    const std::span<const std::byte> page =
        region.subspan(end - kPageBytes, kPageBytes);
    const bool is_hole = std::ranges::all_of(
        page, [](std::byte byte) { return byte == std::byte{0}; });
    if (is_hole) continue;
    ALPHEUS_RETURN_IF_ERROR(sink(end - kPageBytes, page));
  }
  return absl::OkStatus();
}

}  // namespace alpheus
