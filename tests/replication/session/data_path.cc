// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/session/data_path.h"

#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::testing {
namespace {

fabric::Fabric::Limits LimitsOf(const DataPath::Options& options) {
  fabric::Fabric::Limits limits;
  limits.sends_max = 64;
  limits.receives_max = 64;
  limits.message_bytes_max = options.message_bytes_max;
  return limits;
}

LogHarness::Options HarnessOf(const DataPath::Options& options) {
  LogHarness::Options harness;
  harness.ring_capacity = options.ring_capacity;
  return harness;
}

}  // namespace

DataPath::DataPath(const Options& options)
    : log_(HarnessOf(options)), fabric_(LimitsOf(options)) {
  ALPHEUS_CHECK(log_.Open().ok(), "a fresh log opens");
  const std::vector<std::byte> image(log_.region().begin(),
                                     log_.region().end());
  for (int i = 0; i < options.backups; ++i) {
    Backup& b = *backups_.emplace_back(
        std::make_unique<Backup>(LimitsOf(options), image));
    b.state = *ReadRegionState(b.pmem.region(), "backup");
    const Ring ring = RingOf(b.pmem.region(), b.state.superline);
    terms_ = {b.state.superline.log_epoch, kSession, b.state.head(),
              options.credits};
    terms_.batch_bytes_max = options.batch_bytes_max;
    terms_.platform = options.platform;
    terms_.ceiling = b.state.superline.ceiling;
    if (options.ceiling_lines != 0) {
      terms_.ceiling = RingOffset(options.ceiling_lines * kLineBytes);
    }
    replication::SessionTerms backup_terms = terms_;
    if (options.backup_ceiling_lines != 0) {
      backup_terms.ceiling =
          RingOffset(options.backup_ceiling_lines * kLineBytes);
    }
    b.connection = DirectFabric::Join(fabric_, b.fabric);
    const fabric::RegionKey backup_key = *b.fabric.Register(
        {ring.data(), ring.capacity()}, fabric::RemoteAccess::kReadWrite);
    b.session = *replication::BackupSession<model::ModelPersistence>::Start(
        b.pmem,
        {b.pmem.region(), ring, &b.state.table, b.state.superline.log_id,
         [&b](Epoch, const RingBounds& bounds) {
           b.heads.push_back(bounds.head);
           return absl::OkStatus();
         }},
        backup_terms, b.counted, b.connection);
    const Ring own = RingOf(log_.region(), b.state.superline);
    const fabric::RegionKey local_key = *fabric_.Register(
        {own.data(), own.capacity()}, fabric::RemoteAccess::kNone);
    sessions_.push_back(*replication::PrimarySession::Start(
        {own, local_key, backup_key}, terms_, counted_, b.connection));
  }
}

absl::Status DataPath::Backup::Drain() {
  for (const fabric::Completion& completion : fabric.DrainCompletions()) {
    ALPHEUS_RETURN_IF_ERROR(session->OnCompletion(completion));
  }
  return absl::OkStatus();
}

uint64_t DataPath::Backup::RecordsAfterAPowerCut() {
  std::vector<std::byte> left = pmem.CutKeepingNone();
  const auto after = ReadRegionState(left, "after the power cut");
  ALPHEUS_CHECK(after.ok(), "a power cut never makes a region unreadable");
  return ScanLog(ScanInputOf(left, *after)).data_records;
}

RingEnd DataPath::End() {
  const RegionState& state = backups_.front()->state;
  const Ring ring = RingOf(log_.region(), state.superline);
  // Records that were cleaned since are of no interest: the walk starts where
  // the backup is.
  const LogPosition& from = backups_.front()->session->next();
  RecordCursor cursor(ring, state.table, from, from.offset + ring.capacity(),
                      RecordCursor::Payloads::kSkip);
  while (cursor.position().lsn < log_.log().next_lsn() &&
         cursor.Next() == RecordCursor::Step::kRecord) {
  }
  return {cursor.position().lsn - 1, cursor.position().offset};
}

absl::Status DataPath::Drain() {
  for (const fabric::Completion& completion : fabric_.DrainCompletions()) {
    for (size_t i = 0; i < backups_.size(); ++i) {
      if (backups_[i]->connection != completion.connection) continue;
      ALPHEUS_RETURN_IF_ERROR(sessions_[i]->OnCompletion(completion));
    }
  }
  return absl::OkStatus();
}

absl::Status DataPath::Round() {
  counted_.FlushSends();
  fabric_.Run();
  for (const auto& b : backups_) {
    ALPHEUS_RETURN_IF_ERROR(b->Drain());
    do {
      ALPHEUS_RETURN_IF_ERROR(b->session->Step());
    } while (b->session->has_more());
    b->counted.FlushSends();
    b->fabric.Run();
    ALPHEUS_RETURN_IF_ERROR(b->Drain());
  }
  return Drain();
}

}  // namespace alpheus::testing
