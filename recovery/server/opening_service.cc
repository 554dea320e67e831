// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/opening_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/state_report_wire.h"

namespace alpheus::recovery {
namespace {

std::vector<LsnRun> DamageIn(const StateReport& report) {
  std::vector<LsnRun> damage;
  for (const VerdictRun& run : report.runs) {
    if (run.verdict == Verdict::kCorrupt) {
      damage.push_back({run.first, run.end});
    }
  }
  return damage;
}

}  // namespace

// P-A5. Checked before anything of the log changes.
absl::Status OpeningService::CheckConfiguration(uint64_t own,
                                                const Prepare& ask) {
  if (ask.configuration_id >= own) return absl::OkStatus();
  return Rejection(
      RejectReason::kOlderConfiguration,
      absl::FailedPreconditionError(absl::StrCat(
          "the primary has configuration ", ask.configuration_id,
          ", older than ", own,
          " of this replica. Give it the newest list of members")));
}

absl::Status OpeningService::CheckAsker(const PeerConnection& connection,
                                        const quorum::Promise& promise) {
  if (promise.primary == connection.hello.primary) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a promise is asked for node ", promise.primary.node.value,
                   ", which is not the process that connected"));
}

absl::StatusOr<MaybeReply> OpeningService::Refusing(
    const PeerConnection& connection, const quorum::Promise& request,
    const absl::Status& why) {
  const std::optional<quorum::Promise> current = quorum::RefusingPromise(why);
  if (!current.has_value()) return why;
  ++connections_.counters().refused;
  connections_.Warn(connection.peer, Rejection(RejectReason::kStaleEpoch, why),
                    absl::StrCat(connections_.Describe(connection),
                                 ", is refused epoch ", request.epoch.value));
  return Refused{*current};
}

bool OpeningService::IsUnknown(const Prepare& ask,
                               const quorum::Promise& current) {
  return ask.promised_max.has_value() && current.epoch > *ask.promised_max &&
         current.primary != ask.promise.primary;
}

Message OpeningService::RefuseLate(const PeerConnection& connection,
                                   const Prepare& ask,
                                   const quorum::Promise& current) {
  ++connections_.counters().refused;
  connections_.Note(
      connection,
      absl::StrCat("is refused epoch ", ask.promise.epoch.value, ": epoch ",
                   current.epoch.value, " is promised to node ",
                   current.primary.node.value, " since it decided to open"));
  return Refused{current};
}

bool OpeningService::ReadsReports(const ServedLog& log) const {
  const auto reads = [&](const PeerConnection& connection) {
    return connection.log == &log && (connection.phase == Phase::kReporting ||
                                      connection.phase == Phase::kPromised);
  };
  return !connections_.Where(reads).empty();
}

// P-A4.2, in this order.
absl::StatusOr<MaybeReply> OpeningService::OnPrepare(PeerConnection& connection,
                                                     const Prepare& ask) {
  ServedLog& log = *connection.log;
  ALPHEUS_RETURN_IF_ERROR(CheckAsker(connection, ask.promise));
  const DeletionState deletion = log.deletion();
  if (deletion.deletion != Deletion::kNone) return deletion;  // P-D2
  ALPHEUS_RETURN_IF_ERROR(
      CheckConfiguration(log.server_hello().configuration_id, ask));
  // OSV3.
  const quorum::Promise current = log.current_promise();
  if (IsUnknown(ask, current) && !ReadsReports(log)) {
    return RefuseLate(connection, ask, current);
  }
  const absl::StatusOr<quorum::PromiseVerdict> verdict =
      log.AcceptPromise(ask.promise);
  if (!verdict.ok()) return Refusing(connection, ask.promise, verdict.status());
  connection.promise = ask.promise;
  Fence(connection);  // OSV1: before the scan
  ALPHEUS_RETURN_IF_ERROR(log.StartStateReport(ask.from_head));
  connection.phase = Phase::kReporting;
  return std::nullopt;
}

absl::StatusOr<Message> OpeningService::AfterReport(
    PeerConnection& connection) {
  ServedLog& log = *connection.log;
  const StateReport report = log.TakeStateReport();
  scrubbing_.NoteDamage(log.log_id(), report.log_epoch, DamageIn(report));
  connection.report = EncodeStateReport(log.log_id(), report);
  connection.phase = Phase::kPromised;
  Promised promised;
  promised.report_bytes = connection.report.size();
  ALPHEUS_ASSIGN_OR_RETURN(promised.report_key,
                           connections_.IssueKey(connection, connection.report,
                                                 fabric::RemoteAccess::kRead));
  ALPHEUS_ASSIGN_OR_RETURN(promised.ring_key,
                           connections_.IssueKey(connection, log.ring(),
                                                 fabric::RemoteAccess::kRead));
  ++connections_.counters().promised;
  connections_.Note(connection, absl::StrCat("is promised epoch ",
                                             connection.promise.epoch.value));
  return promised;
}

// OSV1. The owner's own connection stays; its keys are void all the same.
void OpeningService::Fence(PeerConnection& owner) {
  const std::vector<fabric::ConnectionId> others =
      connections_.Where([&](const PeerConnection& connection) {
        return connection.log == owner.log && connection.ever_promised() &&
               connection.id != owner.id;
      });
  for (const fabric::ConnectionId id : others) {
    PeerConnection& other = *connections_.Find(id);
    ++connections_.counters().fenced;
    connections_.Note(
        other,
        absl::StrCat("steps down for node ", owner.hello.primary.node.value,
                     ", with epoch ", other.promise.epoch.value));
    if (other.hello.primary != owner.promise.primary) {
      connections_.SayOvertaken(other, Refused{owner.promise});
    }
    connections_.End(id, absl::OkStatus());
  }
  connections_.VoidKeys(owner);
  owner.phase = Phase::kControl;
}

absl::Status OpeningService::CheckPromiseOwner(const PeerConnection& connection,
                                               Phase phase, Epoch epoch,
                                               const char* what) {
  const quorum::Promise current = connection.log->current_promise();
  if (connection.phase == phase && connection.promise.epoch == epoch &&
      quorum::MayWrite(current, connection.promise)) {
    return absl::OkStatus();
  }
  const bool is_due = connection.phase == phase;
  return Rejection(
      is_due ? RejectReason::kStaleEpoch : RejectReason::kOutOfTurn,
      absl::FailedPreconditionError(absl::StrCat(
          what, " of epoch ", epoch.value, " refused: ",
          is_due ? "" : "it is not this connection's turn to ask for it; ",
          "this connection holds the promise of epoch ",
          connection.is_promise_owner() ? connection.promise.epoch.value : 0,
          ", promised is epoch ", current.epoch.value,
          ". Nothing was changed; connect again, and ask for a promise")));
}

absl::StatusOr<Message> OpeningService::OnOpenForRepair(
    PeerConnection& connection, const OpenForRepair& open) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPromiseOwner(connection, Phase::kPromised, open.epoch, "prepare"));
  if (open.set_repairing) {
    ALPHEUS_RETURN_IF_ERROR(connection.log->BeginRepair(open.epoch));
  }
  ALPHEUS_RETURN_IF_ERROR(
      connection.log->RaiseCeiling(open.epoch, open.ceiling));
  // The report is dropped. The ring's old key stays valid, since reads by it
  // may be in flight.
  fabric_.Deregister(connection.keys.front()).IgnoreError();
  connection.keys.erase(connection.keys.begin());
  connection.report = {};
  RepairOpened opened;
  ALPHEUS_ASSIGN_OR_RETURN(
      opened.ring_key, connections_.IssueKey(connection, connection.log->ring(),
                                             fabric::RemoteAccess::kReadWrite));
  connection.phase = Phase::kRepairOpened;
  return opened;
}

absl::StatusOr<MaybeReply> OpeningService::OnInstall(PeerConnection& connection,
                                                     const Install& install) {
  const Installation& installation = install.installation;
  ALPHEUS_RETURN_IF_ERROR(CheckPromiseOwner(connection, Phase::kRepairOpened,
                                            installation.epoch, "install"));
  const uint32_t credits_max = fabric_.limits().receives_max;
  if (install.credits > credits_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "install with ", install.credits, " credits refused: this adapter ",
        "takes ", credits_max, ". Nothing was changed; ask for fewer"));
  }
  ALPHEUS_RETURN_IF_ERROR(connection.log->StartInstall(installation));
  connection.install = install;
  connection.phase = Phase::kInstalling;
  return std::nullopt;
}

absl::StatusOr<Message> OpeningService::AfterInstall(
    PeerConnection& connection) {
  const Install install = std::exchange(connection.install, {});
  const Installation& installation = install.installation;
  // PCN1: no control receive is posted. The session posts its own before the
  // primary hears that it may begin.
  ALPHEUS_RETURN_IF_ERROR(
      connection.log->StartSession({.epoch = installation.epoch,
                                    .session = install.session,
                                    .next = installation.end,
                                    .credits = install.credits,
                                    .ceiling = installation.ceiling},
                                   fabric_, connection.id));
  connection.phase = Phase::kSession;
  connection.heartbeat_ms = install.heartbeat_ms;
  connection.has_spoken = false;
  ++connections_.counters().installed;
  const Followed said = connection.log->followed();
  connections_.Note(
      connection,
      absl::StrCat("writes epoch ", installation.epoch.value, ", of ",
                   said.replica_count, " members, ", said.write_quorum,
                   " of which persist each record"));
  return Installed{};
}

// P-D1.
absl::StatusOr<Message> OpeningService::OnMark(PeerConnection& connection,
                                               const Mark& mark) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPromiseOwner(connection, Phase::kPromised, mark.epoch, "mark"));
  ServedLog& log = *connection.log;
  ALPHEUS_RETURN_IF_ERROR(log.MarkDeleted(Deletion::kMarked));
  EndUsers(connection);  // OSV4
  connections_.Note(
      connection,
      absl::StrCat("has it marked as deleted, by epoch ", mark.epoch.value,
                   ": it is opened no more, and its records are "
                   "kept until the deletion is decided"));
  return log.deletion();
}

// The owner's own connection stays; its keys are void all the same.
void OpeningService::EndUsers(PeerConnection& owner) {
  const std::vector<fabric::ConnectionId> users =
      connections_.Where([&](const PeerConnection& connection) {
        return connection.log == owner.log && connection.id != owner.id &&
               !connection.keys.empty();
      });
  for (const fabric::ConnectionId id : users) {
    connections_.End(id, absl::OkStatus());
  }
  connections_.VoidKeys(owner);
  owner.report = {};
  owner.phase = Phase::kControl;
}

absl::StatusOr<Message> OpeningService::AfterWork(PeerConnection& connection) {
  return connection.phase == Phase::kReporting ? AfterReport(connection)
                                               : AfterInstall(connection);
}

}  // namespace alpheus::recovery
