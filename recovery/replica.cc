// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "log/pmem/crash_model.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "recovery/installer.h"

namespace alpheus {
namespace {

// Whether the log can go on from `position`; see kLsnMax (region_state.h).
bool HasRoom(const LogPosition& position) {
  return position.lsn.value >= 1 && position.lsn.value <= kLsnMax / 2 &&
         position.offset.value <= kOffsetMax / 2 &&
         position.offset.value % kLineBytes == 0;
}

// Whether records can lie between two positions: each takes a line at least.
bool Follows(const LogPosition& from, const LogPosition& to) {
  return from.lsn <= to.lsn && from.offset <= to.offset &&
         to.lsn - from.lsn <= (to.offset - from.offset) / kLineBytes &&
         (from.lsn != to.lsn || from == to);
}

LogPosition PositionOf(const EpochEntry& entry) {
  return {entry.start_lsn, entry.start_offset, entry.start_chain};
}

std::string Describe(const LogPosition& position) {
  return absl::StrCat("LSN ", position.lsn.value, " at offset ",
                      position.offset.value, " with chain ",
                      absl::Hex(position.chain));
}

}  // namespace

template <Persistence P>
absl::StatusOr<std::unique_ptr<Replica<P>>> Replica<P>::Open(
    P& pmem, std::span<std::byte> region, const ReplicaOptions& options) {
  std::unique_ptr<Replica> replica(new Replica(pmem, region, options));
  ALPHEUS_RETURN_IF_ERROR(replica->Begin());
  ALPHEUS_RETURN_IF_ERROR(replica->CheckIdentity());
  replica->promised_before_ = replica->state_.superline.promised_epoch;
  Installer<P> installer(pmem, region, replica->state_);
  if (!IsMutant(Mutant::kReplicaTrustsTheCache)) installer.FlushBeforeRing();
  ALPHEUS_RETURN_IF_ERROR(installer.Fence());
  return replica;
}

template <Persistence P>
absl::Status Replica<P>::Begin() {
  switch (condition_) {
    case Condition::kGood:
      break;
    case Condition::kMediumFailed:
      if (IsMutant(Mutant::kFailedReplicaGoesOn)) break;
      return absl::FailedPreconditionError(absl::StrCat(
          options_.name,
          ": the medium failed before, and what is on it is unknown. Open the "
          "replica again"));
    case Condition::kHandedOver:
      if (IsMutant(Mutant::kSuperlineHasTwoWriters)) break;
      return absl::FailedPreconditionError(absl::StrCat(
          options_.name,
          ": the log that was started is the writer of this region now. End "
          "it, and open the replica again"));
  }
  if (IsMutant(Mutant::kReplicaReadsOnce) && superline_seq_ != 0) {
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(state_, ReadRegionState(region_, options_.name));
  const CellState& cell = state_.superline_cell;
  superline_seq_ = cell.copies[*cell.newest].seq;
  return absl::OkStatus();
}

template <Persistence P>
absl::Status Replica<P>::CheckIdentity() const {
  const auto check = [this](const char* what, const std::optional<Uuid>& wanted,
                            const Uuid& found) {
    if (!wanted || *wanted == found) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": is of ", what, " ", found.ToString(), ", expected ",
        wanted->ToString(), ". Nothing was changed; name the right region"));
  };
  ALPHEUS_RETURN_IF_ERROR(check("cluster", options_.expected_cluster_id,
                                state_.superline.cluster_id));
  return check("log", options_.expected_log_id, state_.superline.log_id);
}

template <Persistence P>
absl::StatusOr<PromiseVerdict> Replica<P>::AcceptPromise(
    const Promise& request) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  if (request.epoch.value > kNumberMax / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.name, ": promise refused: epoch ",
                     request.epoch.value, " is beyond ", kNumberMax / 2,
                     ", which no ballot reaches; whoever asked is faulty"));
  }
  const Promise standing = PromiseOf(state_.superline);
  ALPHEUS_ASSIGN_OR_RETURN(const PromiseVerdict verdict,
                           AnswerPromise(standing, request));
  ALPHEUS_RETURN_IF_ERROR(MendTable());
  // A promise that one copy holds would be forgotten with that copy (S2).
  if (verdict == PromiseVerdict::kAgain &&
      (state_.superline_cell.at_rest() ||
       IsMutant(Mutant::kPromiseOfOneCopy))) {
    return verdict;
  }
  Superline next = state_.superline;
  SetPromise(request, next);
  if (IsMutant(Mutant::kPromiseEndsARepair)) next.repairing = false;
  if (IsMutant(Mutant::kPromiseUnwritten)) {
    state_.superline = next;
    return verdict;
  }
  ALPHEUS_RETURN_IF_ERROR(UpdateSuperline(next));
  if (verdict == PromiseVerdict::kNew) {
    promised_before_ = standing.epoch;
    installed_.reset();
  }
  return verdict;
}

template <Persistence P>
absl::StatusOr<Answer> Replica<P>::MakeAnswer() {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  const RingOffset head = state_.superline.head_offset;
  Installer<P> installer(pmem_, region_, state_);
  installer.FlushBeforeRing();
  if (!IsMutant(Mutant::kVisibleIsAnswered)) {
    installer.FlushRing(head, head + state_.superline.ring_capacity);
  }
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.Fence()));
  Answer answer = AnswerOfRegion(region_, state_, {.suspect = suspect_});
  answer.promised_before = promised_before_;
  return answer;
}

template <Persistence P>
absl::Status Replica<P>::CheckPromised(const char* call, Epoch epoch) const {
  const Epoch promised = state_.superline.promised_epoch;
  if (epoch == promised || IsMutant(Mutant::kUnpromisedInstalls)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(options_.name, ": ", call, " of epoch ", epoch.value,
                   " refused: promised is epoch ", promised.value,
                   ". Ask for a promise of an epoch above it"));
}

template <Persistence P>
absl::Status Replica<P>::BeginRepair(Epoch epoch) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("repair", epoch));
  if (epoch == state_.superline.log_epoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": epoch ", epoch.value,
        " is installed already, and acknowledged records must stay. Open a "
        "later epoch"));
  }
  if (state_.superline.repairing || IsMutant(Mutant::kRepairUnwritten)) {
    return absl::OkStatus();
  }
  Superline next = state_.superline;
  next.repairing = true;
  return UpdateSuperline(next);
}

template <Persistence P>
absl::Status Replica<P>::CheckInstallable(
    const Installation& installation) const {
  const Superline& found = state_.superline;
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("install", installation.epoch));
  if (installation.epoch <= found.log_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.name, ": epoch ", installation.epoch.value,
                     " can't be installed over epoch ", found.log_epoch.value,
                     ". Open a later epoch"));
  }
  if (is_blank() && !IsMutant(Mutant::kBlankInstalls)) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": configuration ", found.configuration.id,
        " does not name node ", found.node.value, " with incarnation ",
        absl::Hex(found.incarnation),
        ": the replica is blank, and joins by a change of members only"));
  }
  return absl::OkStatus();
}

template <Persistence P>
absl::Status Replica<P>::CheckPositions(
    const Installation& installation) const {
  const LogPosition& head = installation.head;
  const LogPosition& end = installation.end;
  const bool possible =
      HasRoom(head) && HasRoom(end) && Follows(head, end) &&
      end.offset - head.offset <= state_.superline.ring_capacity &&
      (Follows(state_.head(), head) || Follows(head, state_.head()));
  if (possible) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options_.name, ": epoch ", installation.epoch.value,
                   ": a log from ", Describe(head), " to ", Describe(end),
                   " can't be, in a ring of ", state_.superline.ring_capacity,
                   " bytes whose head is ", Describe(state_.head()),
                   ". Nothing was changed; whoever asked is faulty"));
}

template <Persistence P>
absl::StatusOr<EpochTable> Replica<P>::CheckTable(
    const Installation& installation) const {
  // By its bytes, so that its keys are those of this log.
  ALPHEUS_ASSIGN_OR_RETURN(
      EpochTable table,
      EpochTable::Decode(state_.superline.log_id, installation.table.Encode()));
  const LogPosition& end = installation.end;
  const std::vector<EpochEntry>& entries = table.entries();
  const auto is_possible = [&end](const EpochEntry& entry) {
    return HasRoom(PositionOf(entry)) && entry.start_offset <= end.offset;
  };
  const bool possible =
      !entries.empty() && entries.back().epoch == installation.epoch &&
      PositionOf(entries.back()) == end &&
      std::all_of(entries.begin(), entries.end(), is_possible);
  if (!possible) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": the epoch table of epoch ", installation.epoch.value,
        " with ", entries.size(), " entries does not open it at ",
        Describe(end), ". Nothing was changed; whoever asked is faulty"));
  }
  if (entries.size() > state_.superline.table_capacity) {
    return absl::ResourceExhaustedError(absl::StrCat(
        options_.name, ": the epoch table is full: ", entries.size(),
        " entries, room for ", state_.superline.table_capacity,
        ". Nothing was changed. Clean the oldest records, so that the log "
        "starts behind LSN ",
        entries[1].start_lsn.value - 1, ", and open it again"));
  }
  return table;
}

template <Persistence P>
absl::Status Replica<P>::CheckStart(const Installation& installation,
                                    const EpochTable& table,
                                    const LogPosition& at) const {
  const EpochEntry* const owner = table.Owner(at.lsn);
  if (owner == nullptr || owner->start_lsn != at.lsn ||
      PositionOf(*owner) == at || IsMutant(Mutant::kInstallUnchained)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(options_.name, ": epoch ", installation.epoch.value,
                   " was not installed: the records before it lead to ",
                   Describe(at), ", but epoch ", owner->epoch.value,
                   " starts with ", Describe(PositionOf(*owner)),
                   ". Copy the records again from a replica that has them"));
}

template <Persistence P>
absl::StatusOr<typename Replica<P>::InstalledLog> Replica<P>::ReadLog(
    const Installation& installation, const EpochTable& table) const {
  const LogPosition& end = installation.end;
  InstalledLog log;
  log.end = end;
  log.index = std::make_shared<LsnIndex>(state_.superline.ring_capacity);
  RecordCursor cursor(ring(), table, installation.head, end.offset);
  for (;;) {
    cursor.WalkPlain([&log](const LogPosition& before, const RecordView&) {
      log.index->Note(before);
    });
    const LogPosition before = cursor.position();
    log.index->Note(before);
    // An epoch ends the walk above, so that each start is seen here.
    ALPHEUS_RETURN_IF_ERROR(CheckStart(installation, table, before));
    if (before.lsn >= end.lsn || IsMutant(Mutant::kInstallUnread)) break;
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return absl::DataLossError(absl::StrCat(
          options_.name, ": epoch ", installation.epoch.value,
          " was not installed: LSN ", before.lsn.value, " at offset ",
          state_.superline.ring_offset + ring().Place(before.offset),
          " can't be read, expected are records up to LSN ", end.lsn.value - 1,
          ". Copy it again from a replica that has it"));
    }
    if (cursor.pad_damaged()) {
      log.damaged_pads.push_back({before.lsn, cursor.record_begin()});
    }
  }
  return log;
}

template <Persistence P>
absl::Status Replica<P>::Install(const Installation& installation) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckInstallable(installation));
  ALPHEUS_RETURN_IF_ERROR(CheckPositions(installation));
  ALPHEUS_ASSIGN_OR_RETURN(const EpochTable table, CheckTable(installation));

  const LogPosition& end = installation.end;
  const uint64_t seq = superline_seq_ + 1;
  Superline next = state_.superline;
  next.log_epoch = installation.epoch;
  if (!IsMutant(Mutant::kRepairNeverEnds)) next.repairing = false;
  next.table_seq = state_.superline.table_seq + 1;
  next.head_lsn = installation.head.lsn;
  next.head_offset = installation.head.offset;
  next.head_chain = installation.head.chain;
  ALPHEUS_RETURN_IF_ERROR(CheckRoomToGoOn(options_.name, next, seq, end));

  Installer<P> installer(pmem_, region_, state_);
  if (!IsMutant(Mutant::kVisibleIsInstalled)) {
    installer.FlushRing(installation.head.offset, end.offset);
  }
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.Fence()));
  ALPHEUS_ASSIGN_OR_RETURN(InstalledLog log, ReadLog(installation, table));

  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.InstallEpoch(
      IsMutant(Mutant::kOwnTableStays)
          ? state_.table.With(table.entries().back(), next.head_lsn)
          : table,
      next, seq)));
  ALPHEUS_RETURN_IF_ERROR(
      OfMedium(installer.RenewWatermarks(next.log_epoch, end.lsn - 1)));
  if (!log.damaged_pads.empty()) {
    installer.RewritePads(table, log.damaged_pads);
    ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.Fence()));
  }
  suspect_ = false;
  state_.superline = next;
  state_.table = table;
  superline_seq_ = seq;
  installed_ = std::move(log);
  return absl::OkStatus();
}

template <Persistence P>
absl::Status Replica<P>::PublishHead(Epoch epoch, const LogPosition& head) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("head", epoch));
  if (epoch != state_.superline.log_epoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": head of epoch ", epoch.value,
        " refused: installed is epoch ", state_.superline.log_epoch.value,
        ". Install the epoch first"));
  }
  const bool is_behind = head.lsn < state_.superline.head_lsn;
  if (is_behind && !IsMutant(Mutant::kHeadGoesBack)) return absl::OkStatus();
  if (head == state_.head()) return absl::OkStatus();
  if (!HasRoom(head) || (!is_behind && !Follows(state_.head(), head))) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": epoch ", epoch.value, ": a head of ", Describe(head),
        " can't be, the present one is ", Describe(state_.head()),
        ". Nothing was changed; whoever asked is faulty"));
  }
  Superline next = state_.superline;
  next.head_lsn = head.lsn;
  next.head_offset = head.offset;
  next.head_chain = head.chain;
  return UpdateSuperline(next);
}

template <Persistence P>
RingLogStart Replica<P>::StartOfLog() {
  ALPHEUS_CHECK(condition_ == Condition::kGood, "open (replica.h)");
  ALPHEUS_CHECK(installed_.has_value(), "only an installed log starts (A4.6)");
  condition_ = Condition::kHandedOver;
  RingLogStart start;
  start.superline = state_.superline;
  start.superline_seq = superline_seq_;
  start.table = state_.table;
  start.end = installed_->end;
  start.index = installed_->index;
  return start;
}

template <Persistence P>
absl::Status Replica<P>::MendTable() {
  if (state_.table_cell.at_rest() || IsMutant(Mutant::kTableOfOneCopy)) {
    return absl::OkStatus();
  }
  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  return OfMedium(Installer<P>(pmem_, region_, state_).MendTable());
}

template <Persistence P>
absl::Status Replica<P>::UnmarkCleanClose() {
  if (*CleanCloseAddress(region_) == 0) return absl::OkStatus();
  return OfMedium(Installer<P>(pmem_, region_, state_).UnmarkCleanClose());
}

template <Persistence P>
absl::Status Replica<P>::UpdateSuperline(const Superline& next) {
  const uint64_t seq = superline_seq_ + 1;
  const LogPosition head{next.head_lsn, next.head_offset, next.head_chain};
  ALPHEUS_RETURN_IF_ERROR(CheckRoomToGoOn(options_.name, next, seq, head));
  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  Installer<P> installer(pmem_, region_, state_);
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.WriteSuperline(next, seq)));
  state_.superline = next;
  superline_seq_ = seq;
  return absl::OkStatus();
}

template <Persistence P>
absl::Status Replica<P>::OfMedium(absl::Status status) {
  if (!status.ok()) condition_ = Condition::kMediumFailed;
  return status;
}

template class Replica<LibpmemPersistence>;
template class Replica<MsyncPersistence>;
template class Replica<ModelPersistence>;

}  // namespace alpheus
