// SPDX-License-Identifier: Apache-2.0
#include "replication/replicator.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/mutant.h"
#include "quorum/quorum.h"

namespace alpheus {

Replicator::Replicator(Fabric& fabric, const Clock& clock,
                       const Options& options, const RingEnd& start)
    : fabric_(fabric),
      clock_(clock),
      options_(options),
      end_(start),
      local_lsn_(start.lsn),
      durable_lsn_(start.lsn) {}

void Replicator::Add(std::string name, ConnectionId connection,
                     std::unique_ptr<ReplicaSession> session) {
  ALPHEUS_CHECK(backups_.size() + 1 < kMembersMax, "N is at most kMembersMax");
  backups_.push_back({std::move(name), connection, std::move(session),
                      absl::OkStatus(), clock_.NowNanos()});
}

void Replicator::Advance(const RingEnd& end) {
  end_ = end;
  for (Backup& backup : backups_) Push(backup);
}

void Replicator::LocalPersisted(Lsn lsn) {
  local_lsn_ = std::max(local_lsn_, lsn);
  Count();
}

bool Replicator::Take(const Completion& completion) {
  Backup* backup = Find(completion.connection);
  if (backup == nullptr) return false;
  if (!backup->status.ok()) return true;
  const Lsn before = backup->session->acked_lsn();
  const absl::Status taken = backup->session->Take(completion);
  if (!taken.ok()) {
    GiveUp(*backup, taken);
  } else if (backup->session->acked_lsn() != before) {
    backup->heard_ns = clock_.NowNanos();
    Push(*backup);
    Count();
  }
  return true;
}

bool Replicator::Disconnected(ConnectionId connection) {
  Backup* backup = Find(connection);
  if (backup == nullptr) return false;
  GiveUp(*backup, absl::UnavailableError("the backup broke the connection"));
  return true;
}

void Replicator::Poll() {
  const int64_t now = clock_.NowNanos();
  for (Backup& backup : backups_) {
    if (!backup.status.ok()) continue;
    Push(backup);
    if (!backup.status.ok()) continue;
    const uint64_t lag = end_.offset - backup.session->posted().offset +
                         backup.session->lag_bytes();
    if (lag == 0) {
      backup.heard_ns = now;
    } else if (lag > options_.lag_bytes_max) {
      GiveUp(backup, absl::UnavailableError(absl::StrCat(
                         lag, " bytes behind, at most ", options_.lag_bytes_max,
                         " are allowed (lag_bytes_max)")));
    } else if (now - backup.heard_ns > options_.silence_ns) {
      GiveUp(backup, absl::UnavailableError(absl::StrCat(
                         "acknowledged nothing for ", now - backup.heard_ns,
                         " ns, at most ", options_.silence_ns,
                         " are allowed (silence_ns)")));
    }
  }
}

uint32_t Replicator::in_sync() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(backups_,
                            [](const Backup& b) { return b.status.ok(); }) +
      (options_.has_local_replica ? 1 : 0));
}

Replicator::Backup* Replicator::Find(ConnectionId connection) {
  const auto found =
      std::ranges::find(backups_, connection, &Backup::connection);
  return found == backups_.end() ? nullptr : &*found;
}

// Closing is no fence at the backup, which may take more of what is on its way
// (H21); its acks no longer arrive.
void Replicator::GiveUp(Backup& backup, const absl::Status& why) {
  if (!backup.status.ok()) return;
  backup.status = why;
  fabric_.Close(backup.connection).IgnoreError();
  if (in_sync() >= options_.write_quorum || !status_.ok()) return;
  std::string text = absl::StrCat(
      in_sync(), " replicas are in sync, and ", options_.write_quorum,
      " must be; records behind LSN ", durable_lsn_.value,
      " have an unknown outcome until the log is opened again.");
  for (const Backup& b : backups_) {
    if (!b.status.ok()) {
      absl::StrAppend(&text, " ", b.name, ": ", b.status.message(), ".");
    }
  }
  status_ = absl::AbortedError(text);
}

void Replicator::Push(Backup& backup) {
  if (!backup.status.ok() || end_.offset <= backup.session->posted().offset) {
    return;
  }
  const absl::Status posted = backup.session->Advance(end_);
  if (!posted.ok()) GiveUp(backup, posted);
}

void Replicator::Count() {
  std::array<ReplicaProgress, kMembersMax> replicas;
  size_t count = 0;
  if (options_.has_local_replica) {
    replicas[count++] = {local_lsn_, /*in_sync=*/true};
  }
  for (const Backup& backup : backups_) {
    const ReplicaSession& session = *backup.session;
    replicas[count++] = {IsMutant(Mutant::kPostedIsAcked) ? session.posted().lsn
                                                          : session.acked_lsn(),
                         backup.status.ok()};
  }
  const std::optional<Lsn> durable =
      DurableLsn(std::span(replicas).first(count), options_.write_quorum);
  if (durable) durable_lsn_ = std::max(durable_lsn_, *durable);
}

}  // namespace alpheus
