// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/primary/replicated_log.h"

#include <algorithm>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/core/read/scan.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/format/atomic_cell.h"
#include "log/format/superline.h"

namespace alpheus::testing {
namespace {

constexpr replication::SessionId kTheSession{77};

fabric::Fabric::Limits TheLimits() {
  fabric::Fabric::Limits limits;
  limits.sends_max = 64;
  limits.receives_max = 64;
  limits.message_bytes_max = 1 << 20;
  return limits;
}

Layout LayoutOf(uint64_t ring_capacity) {
  return *Layout::ForRing(ring_capacity, /*table_capacity=*/64);
}

}  // namespace

ReplicatedLog::Backup::Backup(const recovery::OpenedEpoch& opened,
                              std::span<const std::byte> image)
    : fabric(TheLimits()),
      pmem(image),
      superline(opened.start.superline),
      superline_seq(opened.start.superline_seq),
      table(opened.start.table) {}

absl::Status ReplicatedLog::Backup::Publish(Epoch epoch,
                                            const RingBounds& bounds) {
  ALPHEUS_CHECK(epoch == superline.log_epoch, "of the epoch that runs");
  superline.head_lsn = bounds.head.lsn;
  superline.head_offset = bounds.head.offset;
  superline.head_chain = bounds.head.chain;
  superline.ceiling = bounds.ceiling;
  const bool written = WriteCell(pmem, SuperlinePlace(pmem.region()), 0,
                                 ++superline_seq, EncodeSuperline(superline));
  return written ? absl::OkStatus() : pmem.Error();
}

void ReplicatedLog::Backup::Serve() {
  const auto take = [this] {
    for (const fabric::Completion& completion : fabric.DrainCompletions()) {
      ALPHEUS_CHECK(session->OnCompletion(completion).ok(),
                    "the session goes on");
    }
  };
  take();
  const absl::Status stepped = session->Step();
  ALPHEUS_CHECK(stepped.ok(), "the session goes on");
  fabric.Run();
  take();
}

ReplicatedLog::ReplicatedLog(const Options& options)
    : options_(options),
      pmem_(LayoutOf(options.ring_capacity).region_bytes),
      fabric_(TheLimits()) {
  ALPHEUS_CHECK(
      FormatRegion(pmem_, pmem_.region(), LayoutOf(options.ring_capacity),
                   NewLocalIdentity(random_))
          .ok(),
      "modelled memory does not fail unasked");
  recovery::LocalOpeningOptions opening;
  opening.name = "model";
  opened_ =
      *recovery::OpenEpochLocally(pmem_, pmem_.region(), opening, random_);
  const RingLogStart& start = opened_->start;
  replication_ = std::make_unique<replication::Replicator>(
      fabric_, backup_clock_, options.replicator,
      RingEnd{start.end.lsn - 1, start.end.offset});
  const std::vector<std::byte> image(pmem_.region().begin(),
                                     pmem_.region().end());
  const Ring own = RingOf(pmem_.region(), start.superline);
  const fabric::RegionKey own_key = *fabric_.Register(
      {own.data(), own.capacity()}, fabric::RemoteAccess::kNone);
  const replication::SessionTerms terms{.epoch = start.superline.log_epoch,
                                        .session = kTheSession,
                                        .next = start.end,
                                        .credits = options.credits,
                                        .ceiling = start.superline.ceiling};
  for (int i = 0; i < options.backups; ++i) {
    Backup& b =
        *backups_.emplace_back(std::make_unique<Backup>(*opened_, image));
    const Ring ring = RingOf(b.pmem.region(), b.superline);
    b.connection = DirectFabric::Join(fabric_, b.fabric);
    const fabric::RegionKey key = *b.fabric.Register(
        {ring.data(), ring.capacity()}, fabric::RemoteAccess::kWrite);
    b.session = *replication::BackupSession<model::ModelPersistence>::Start(
        b.pmem,
        {b.pmem.region(), ring, &b.table, b.superline.log_id,
         [&b](Epoch epoch, const RingBounds& bounds) {
           return b.Publish(epoch, bounds);
         }},
        terms, b.fabric, b.connection);
    replication_->Add("b" + std::to_string(i), b.connection,
                      *replication::PrimarySession::Start(
                          {own, own_key, key}, terms, fabric_, b.connection));
  }
  fabric_.SetElsewhere([this] {
    for (const auto& b : backups_) {
      if (b->answers && !fabric_.is_closed(b->connection)) b->Serve();
    }
  });
  RingLogOptions log;
  log.name = "model";
  log.exposure_records_max = options.exposure_records_max;
  log.sink = replication_.get();
  log.flush_order = options.order;
  log_ = std::make_unique<RingLog<model::ModelPersistence>>(
      pmem_, pmem_.region(), start, log, clock_, waiter_);
}

absl::StatusOr<Lsn> ReplicatedLog::Append(size_t bytes, Deadline deadline) {
  const std::string text(bytes, 'x');
  const std::span<const std::byte> part = AsBytes(text);
  return log_->Append({&part, 1}, 1, deadline);
}

absl::StatusOr<Lsn> ReplicatedLog::Fill(size_t bytes, Deadline deadline) {
  absl::StatusOr<ReservedRecord> record = log_->Reserve(bytes, deadline);
  if (!record.ok()) return record.status();
  const absl::Status completed = log_->Complete(*record);
  if (!completed.ok()) return completed;
  return record->lsn;
}

Lsn ReplicatedLog::DurableFieldOf(Lsn lsn) {
  const LogPosition head = log_->head();
  RecordCursor cursor(log_->ring(), log_->table(), head,
                      head.offset + log_->ring().capacity());
  while (cursor.position().lsn <= lsn) {
    ALPHEUS_CHECK(cursor.Next() == RecordCursor::Step::kRecord,
                  "the primary holds the record");
  }
  return Lsn(cursor.record().header.durable_lsn());
}

int ReplicatedLog::HoldersAfterAPowerCut(Lsn lsn) {
  const auto holds = [lsn](const model::ModelPersistence& pmem) {
    std::vector<std::byte> left = pmem.CutKeepingNone();
    const auto state = ReadRegionState(left, "after the power cut");
    ALPHEUS_CHECK(state.ok(), "a power cut never makes a region unreadable");
    return lsn < state->superline.head_lsn ||
           lsn < ScanLog(ScanInputOf(left, *state)).end.lsn;
  };
  int holders = options_.replicator.has_local_replica && holds(pmem_) ? 1 : 0;
  for (const auto& b : backups_) holders += holds(b->pmem) ? 1 : 0;
  return holders;
}

}  // namespace alpheus::testing
