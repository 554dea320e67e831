// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/rocksdb_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "log/format/layout.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using wal::kWalHeaderBytes;
using wal::WalRecordKind;

namespace {

// WalOptions::stall_ms, in a world where all goes faster.
constexpr int64_t kStallNanos = 2'000'000;

bool IsOfPlugin(std::span<const std::byte> payload) {
  return payload.size() >= kPayloadBytesMin + kWalHeaderBytes &&
         wal::DecodeWalRecord(payload.subspan(kPayloadBytesMin)).ok();
}

}  // namespace

void FiberMutex::Lock() {
  while (is_locked_) threads_.WaitFor(this, Deadline());
  is_locked_ = true;
}

void FiberMutex::Unlock() {
  is_locked_ = false;
  threads_.Wake(this);
}

RocksDbFiles::RocksDbFiles(PrimaryProcess& primary)
    : primary_(primary),
      space_(PayloadBytesMax(primary.world().options().ring_capacity)),
      metadata_(primary.world().threads()),
      appending_(primary.world().threads()) {}

std::string RocksDbFiles::NameOf(uint64_t id) {
  return absl::StrFormat("%06d.log", id);
}

void RocksDbFiles::Recover(std::span<const History::Shown> records) {
  for (const History::Shown& shown : records) {
    last_change_ = shown.lsn;
    const uint64_t position = space_.Add(shown.payload.size());
    // A fault's record, which is of no file, is in the way of nobody.
    if (shown.aborted || shown.cleaned || !IsOfPlugin(shown.payload)) continue;
    const wal::WalRecord record =
        *wal::DecodeWalRecord(shown.payload.subspan(kPayloadBytesMin));
    const absl::Status applied = index_.Apply(shown.lsn, position, record);
    if (applied.ok()) continue;
    primary_.world().oracle().Violate("WST2", applied.ToString());
    return;
  }
  std::map<uint64_t, uint64_t> sizes;
  for (const FilePtr& file : List()) sizes[file->id()] = file->size();
  primary_.world().counters().wal_files_found += sizes.size();
  primary_.world().checkers().wal_files.Opened(primary_.number(), records,
                                               sizes);
}

std::vector<RocksDbFiles::FilePtr> RocksDbFiles::List() const {
  std::vector<FilePtr> files;
  for (const std::string& name : index_.List("")) {
    files.push_back(index_.Find(name));
  }
  std::ranges::sort(files, {}, [](const FilePtr& file) { return file->id(); });
  return files;
}

bool RocksDbFiles::Judge(const BegunCall& call, Lsn lsn,
                         const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) primary_.profiles().FoundFull();
  return primary_.Returned(call, lsn, status);
}

void RocksDbFiles::NotifyChecker(const Write& write, OperationId operation) {
  WalFileChecker& checker = primary_.world().checkers().wal_files;
  const PrimaryNumber number = primary_.number();
  const wal::WalHeader& header = write.header;
  switch (header.kind) {
    case WalRecordKind::kCreate:
      return checker.Creates(number, header.file, operation);
    case WalRecordKind::kData:
      return checker.Writes(number, header.file, operation, header.offset,
                            write.data_bytes);
    case WalRecordKind::kRemove:
      return checker.RemovesBy(number, header.file, operation);
    case WalRecordKind::kHome:
    case WalRecordKind::kTruncate:
    case WalRecordKind::kRename:
      return;
  }
}

// Header and data apart, as the plugin does, or in place.
bool RocksDbFiles::FillRecord(ReservedRecord& record,
                              std::span<const std::byte> payload,
                              size_t header_bytes) {
  if (primary_.world().random().Below(2) == 0) {
    std::ranges::copy(payload, record.payload);
    record.filled_in_place = true;
    return true;
  }
  const BegunCall header = primary_.Begin(ClientCall::kCopy);
  const absl::Status copied =
      primary_.log().Copy(record, 0, payload.first(header_bytes));
  if (!Judge(header, record.lsn, copied)) return false;
  if (payload.size() == header_bytes) return true;
  const BegunCall body = primary_.Begin(ClientCall::kCopy);
  return Judge(
      body, record.lsn,
      primary_.log().Copy(record, header_bytes, payload.subspan(header_bytes)));
}

absl::StatusOr<RocksDbFiles::Written> RocksDbFiles::Complete(
    const Write& write) {
  std::vector<std::byte> content(kWalHeaderBytes + write.body.size());
  wal::EncodeWalHeader(write.header,
                       std::span(content).first<kWalHeaderBytes>());
  std::ranges::copy(std::as_bytes(std::span(write.body)),
                    content.begin() + kWalHeaderBytes);
  std::vector<std::byte> payload(kPayloadBytesMin + content.size() +
                                 write.data_bytes);
  const BegunCall reserve = primary_.Begin(ClientCall::kReserve);
  absl::StatusOr<ReservedRecord> record =
      primary_.log().Reserve(payload.size(), reserve.deadline);
  if (!Judge(reserve, record.ok() ? record->lsn : Lsn(0), record.status())) {
    return record.status();
  }
  History& history = primary_.world().history();
  const OperationId operation =
      history.Begin(primary_.number(), payload.size());
  history.HasLsn(operation, record->lsn);
  FillPayload(operation, payload, content);
  const bool is_filled =
      FillRecord(*record, payload, kPayloadBytesMin + content.size());
  if (!is_filled) {
    history.MayBeAborted(operation);
    primary_.log().Abort(*record);
    return absl::AbortedError("the record was not filled");
  }
  NotifyChecker(write, operation);
  history.HasContent(operation, std::move(content));
  history.MayBeCompleted(operation);
  const BegunCall complete = primary_.Begin(ClientCall::kComplete);
  const absl::Status completed = primary_.log().Complete(*record);
  if (!Judge(complete, record->lsn, completed)) return completed;
  const std::span<const std::byte> all(record->payload, payload.size());
  return Written{record->lsn, space_.Add(payload.size()),
                 all.subspan(kPayloadBytesMin + kWalHeaderBytes)};
}

absl::Status RocksDbFiles::Change(const Write& write) {
  const absl::StatusOr<Written> written = Complete(write);
  if (!written.ok()) return written.status();
  last_change_ = written->lsn;
  const absl::Status applied = index_.Apply(written->lsn, written->position,
                                            {write.header, written->body});
  if (!applied.ok()) {
    primary_.world().oracle().Violate("WST2", applied.ToString());
  }
  return applied;
}

bool RocksDbFiles::WriteHome() {
  const wal::WalHome home{"/db", "/db"};
  return Change({.header = {.kind = WalRecordKind::kHome,
                            .file = index_.next_id()},
                 .body = wal::EncodeWalHome(home)})
      .ok();
}

bool RocksDbFiles::SetHome() {
  const FiberLock lock(metadata_);
  return WriteHome() && ForceThrough(last_change_);
}

RocksDbFiles::FilePtr RocksDbFiles::Create() {
  const FiberLock lock(metadata_);
  const uint64_t id = index_.next_id();
  const absl::Status changed =
      Change({.header = {.kind = WalRecordKind::kCreate, .file = id},
              .body = NameOf(id)});
  return changed.ok() ? index_.Find(NameOf(id)) : nullptr;
}

uint64_t RocksDbFiles::Append(wal::WalFile& file, uint64_t bytes) {
  const FiberLock lock(appending_);
  const bool is_sync_likely = file.was_forced();
  uint64_t written_bytes = 0;
  while (written_bytes < bytes) {
    const uint64_t piece =
        std::min<uint64_t>(bytes - written_bytes, space_.data_bytes_max());
    if (!WaitForRoom(kPayloadBytesMin + kWalHeaderBytes + piece)) break;
    const absl::StatusOr<Written> written =
        Complete({.header = {.kind = WalRecordKind::kData,
                             .file = file.id(),
                             .offset = file.size()},
                  .body = {},
                  .data_bytes = piece});
    if (!written.ok()) break;
    const MutexLock extents(file.mutex);
    file.Extend(written->lsn, written->body, /*is_durable=*/false);
    written_bytes += piece;
  }
  if (is_sync_likely && written_bytes == bytes) BeginForce(file.last_lsn());
  return written_bytes;
}

// The sync, or the next call, reports a failure.
void RocksDbFiles::BeginForce(Lsn lsn) {
  const BegunCall call = primary_.Begin(ClientCall::kBeginForce);
  Judge(call, lsn, primary_.log().BeginForce(lsn));
}

bool RocksDbFiles::Sync(wal::WalFile& file) {
  const uint64_t size = file.size();
  const Lsn last = file.last_lsn();
  // The canary of a sync that does nothing.
  const bool is_idle = primary_.world().options().canary == Canary::kIdleSync;
  if (!is_idle && !ForceThrough(last)) return false;
  file.NoteForced(last);
  primary_.world().checkers().wal_files.Synced(primary_.number(), file.id(),
                                               size);
  ++primary_.world().counters().wal_syncs;
  return true;
}

bool RocksDbFiles::Remove(const FilePtr& file) {
  const FiberLock lock(metadata_);
  primary_.world().checkers().wal_files.Removes(primary_.number(), file->id());
  const absl::Status removed =
      Change({.header = {.kind = WalRecordKind::kRemove, .file = file->id()},
              .body = {}});
  if (!removed.ok()) return false;
  ++primary_.world().counters().wal_files_removed;
  return CleanBeforeOldest();
}

bool RocksDbFiles::CleanBeforeOldest() {
  RingLog<World::Model>& log = primary_.log();
  const FilePtr oldest = index_.Oldest();
  const Lsn last = oldest == nullptr ? last_change_ : oldest->first_lsn() - 1;
  const uint64_t position =
      oldest == nullptr ? space_.position() : oldest->first_position();
  if (last < log.head_lsn()) return true;
  // WIX3: the log must keep a home.
  if (index_.home_lsn() <= last && has_home() && !WriteHome()) return false;
  // WST3: a record that removed a file is among these.
  if (!ForceThrough(last_change_)) return false;
  primary_.world().history().MayBeCleanedThrough(primary_.number(), last);
  const BegunCall call = primary_.Begin(ClientCall::kCleanupThrough);
  if (!Judge(call, last, log.CleanupThrough(last))) return false;
  space_.FreeBefore(position);
  primary_.world().threads().Wake(&space_);
  return true;
}

bool RocksDbFiles::WaitForRoom(size_t payload_bytes) {
  if (space_.Fits(payload_bytes)) return true;
  {
    const FiberLock lock(metadata_);
    if (!CleanBeforeOldest()) return false;
  }
  World& world = primary_.world();
  const int64_t until = world.now() + kStallNanos;
  while (!space_.Fits(payload_bytes)) {
    primary_.profiles().FoundFull();
    if (world.now() >= until || primary_.is_closing()) return false;
    world.threads().WaitFor(&space_, Deadline::AtNanos(until));
  }
  return true;
}

bool RocksDbFiles::ForceThrough(Lsn lsn) {
  if (lsn == Lsn(0)) return true;  // nothing was ever written
  const BegunCall call = primary_.Begin(ClientCall::kForce);
  const absl::Status status =
      primary_.log().Force(lsn, ForcePolicy(1), call.deadline);
  if (!Judge(call, lsn, status)) return false;
  primary_.world().history().Acknowledged(primary_.number(), lsn);
  return true;
}

}  // namespace alpheus::sim
