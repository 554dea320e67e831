// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/local_replica.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/core/ring/backup_composer.h"
#include "log/format/layout.h"
#include "log/pmem/backends.h"
#include "recovery/protocol/deletion.h"
#include "recovery/replica/installer.h"
#include "recovery/replica/number_bounds.h"

namespace alpheus::recovery {
namespace {

constexpr uint64_t kAllBytes = std::numeric_limits<uint64_t>::max();

// Returns true if a log can continue from `position`; see kLsnMax
// (region_state.h).
bool HasRoom(const LogPosition& position) {
  return position.lsn.value >= 1 && position.lsn.value <= kLsnMax / 2 &&
         position.offset.value <= kOffsetMax / 2 &&
         position.offset.value % kLineBytes == 0;
}

// Returns true if records can lie between two positions: each takes a line at
// least.
bool Follows(const LogPosition& from, const LogPosition& to) {
  return from.lsn <= to.lsn && from.offset <= to.offset &&
         to.lsn - from.lsn <= (to.offset - from.offset) / kLineBytes &&
         (from.lsn != to.lsn || from == to);
}

LogPosition PositionOf(const EpochEntry& entry) {
  return {entry.start_lsn, entry.start_offset, entry.start_chain};
}

}  // namespace

template <Persistence P>
absl::StatusOr<std::unique_ptr<LocalReplica<P>>> LocalReplica<P>::Open(
    P& pmem, std::span<std::byte> region, const LocalReplicaOptions& options) {
  std::unique_ptr<LocalReplica> replica(
      new LocalReplica(pmem, region, options));
  ALPHEUS_RETURN_IF_ERROR(replica->Begin());
  ALPHEUS_RETURN_IF_ERROR(replica->CheckIdentity());
  replica->promised_before_ = replica->state_.superline.promised_epoch;
  Installer<P> installer(pmem, region, replica->state_);
  installer.FlushBeforeRing();
  ALPHEUS_RETURN_IF_ERROR(installer.Fence());
  if (options.suspect) ALPHEUS_RETURN_IF_ERROR(replica->MarkRepairing());
  return replica;
}

template <Persistence P>
absl::Status LocalReplica<P>::Begin() {
  switch (condition_) {
    case Condition::kGood:
      break;
    case Condition::kMediumFailed:
      return absl::FailedPreconditionError(absl::StrCat(
          options_.name,
          ": the medium failed before, and what is on it is unknown. Open the "
          "replica again"));
    case Condition::kOfTheLog:
      return absl::FailedPreconditionError(absl::StrCat(
          options_.name,
          ": the log that was started is the writer of this region now. End "
          "it, and open the replica again"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(state_, ReadRegionState(region_, options_.name));
  const CellState& cell = state_.superline_cell;
  superline_seq_ = cell.copies[*cell.newest].seq;
  return absl::OkStatus();
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckIdentity() const {
  if (IsBackup(state_.superline)) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": is a backup of log ",
        state_.superline.log_id.ToString(),
        ", and no node's replica. Nothing was changed; move it out of the "
        "node's directory. A node that lost its replica gets a new one by "
        "`alpheus replace`"));
  }
  const auto check = [this](const char* what, const std::optional<Uuid>& wanted,
                            const Uuid& found) {
    if (!wanted || *wanted == found) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": is of ", what, " ", found.ToString(), ", expected ",
        wanted->ToString(),
        ". Nothing was changed; name the right region, or put this one back "
        "where it belongs"));
  };
  ALPHEUS_RETURN_IF_ERROR(check("cluster", options_.expected_cluster_id,
                                state_.superline.cluster_id));
  ALPHEUS_RETURN_IF_ERROR(
      check("log", options_.expected_log_id, state_.superline.log_id));
  const NodeId node = state_.superline.node;
  if (!options_.expected_node || *options_.expected_node == node) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      options_.name, ": is the replica of node ", node.value,
      ", expected that of node ", options_.expected_node->value,
      ". Nothing was changed; a replica can't move to another node, put the "
      "file back"));
}

template <Persistence P>
absl::StatusOr<quorum::PromiseVerdict> LocalReplica<P>::AcceptPromise(
    const quorum::Promise& request) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckNotDeleted());
  if (request.epoch.value > kNumberMax / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.name, ": promise refused: epoch ",
                     request.epoch.value, " is beyond ", kNumberMax / 2,
                     ", which no ballot reaches; the sender is faulty"));
  }
  const quorum::Promise current = quorum::PromiseOf(state_.superline);
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::PromiseVerdict verdict,
                           quorum::AnswerPromise(current, request));
  EndWork();  // of an owner that this promise fences
  reported_from_.reset();
  ALPHEUS_RETURN_IF_ERROR(RepairTable());
  // A promise in one copy only would be lost with that copy (P-S2). A suspect
  // medium may not hold what it shows.
  if (verdict == quorum::PromiseVerdict::kAgain && !suspect_ &&
      state_.superline_cell.copies_agree()) {
    return verdict;
  }
  Superline next = state_.superline;
  quorum::SetPromise(request, next);
  ALPHEUS_RETURN_IF_ERROR(UpdateSuperline(next));
  if (verdict == quorum::PromiseVerdict::kNew) {
    promised_before_ = current.epoch;
    installed_.reset();
  }
  return verdict;
}

template <Persistence P>
absl::Status LocalReplica<P>::StartStateReport(bool from_head) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  Installer<P>(pmem_, region_, state_).FlushBeforeRing();
  work_ = std::make_unique<Work>();
  work_->scan = std::make_unique<StateReportScan>(
      region_, state_,
      StateReportOptions{
          .suspect = suspect_,
          .read_whole_bytes_max =
              from_head ? kAllBytes : options_.read_whole_bytes_max});
  work_->flushed = work_->scan->begin();
  work_->flush_end = work_->scan->end();
  return absl::OkStatus();
}

template <Persistence P>
void LocalReplica<P>::EndWork() {
  work_.reset();
}

template <Persistence P>
absl::StatusOr<bool> LocalReplica<P>::FlushOn(uint64_t bytes_max) {
  if (work_->is_flushed) return true;
  Installer<P> installer(pmem_, region_, state_);
  const RingOffset to =
      work_->flushed + std::min(bytes_max, work_->flush_end - work_->flushed);
  installer.FlushRing(work_->flushed, to);
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.Fence()));
  work_->flushed = to;
  work_->is_flushed = to == work_->flush_end;
  return work_->is_flushed;
}

template <Persistence P>
absl::StatusOr<bool> LocalReplica<P>::Continue(uint64_t bytes_max) {
  if (work_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name,
        ": no work is in progress any more: another call came in between, or "
        "the medium failed. Begin again"));
  }
  absl::StatusOr<bool> done = ContinueWork(bytes_max);
  if (!done.ok()) work_.reset();
  return done;
}

template <Persistence P>
absl::StatusOr<bool> LocalReplica<P>::ContinueWork(uint64_t bytes_max) {
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_flushed, FlushOn(bytes_max));
  if (!is_flushed) return false;
  if (work_->scan != nullptr) return work_->scan->Continue(bytes_max);
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_read,
                           work_->reading->Continue(bytes_max));
  if (!is_read) return false;
  ALPHEUS_RETURN_IF_ERROR(Commit());
  work_.reset();
  return true;
}

template <Persistence P>
StateReport LocalReplica<P>::TakeStateReport() {
  ALPHEUS_CHECK(work_ != nullptr && work_->scan != nullptr,
                "an answer was made (local_replica.h)");
  StateReport report = work_->scan->Take();
  report.promised_before = promised_before_;
  reported_from_ = report.start().lsn;
  work_.reset();
  return report;
}

template <Persistence P>
absl::Status LocalReplica<P>::ContinueToTheEnd() {
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(const bool done, Continue(kAllBytes));
    if (done) return absl::OkStatus();
  }
}

template <Persistence P>
absl::StatusOr<StateReport> LocalReplica<P>::MakeStateReport(bool from_head) {
  ALPHEUS_RETURN_IF_ERROR(StartStateReport(from_head));
  ALPHEUS_RETURN_IF_ERROR(ContinueToTheEnd());
  return TakeStateReport();
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckNotDeleted() const {
  if (state_.superline.deletion == Deletion::kNone) return absl::OkStatus();
  return DeletedError(options_.name, state_.superline.deletion);
}

template <Persistence P>
absl::Status LocalReplica<P>::MarkDeleted(Deletion deletion) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  const Superline& found = state_.superline;
  // A mark in one copy only would be lost with that copy (P-S2).
  if (deletion <= found.deletion && state_.superline_cell.copies_agree()) {
    return absl::OkStatus();
  }
  EndWork();
  ALPHEUS_RETURN_IF_ERROR(RepairTable());
  Superline next = found;
  next.deletion = std::max(deletion, found.deletion);
  return UpdateSuperline(next);
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckPromised(const char* call,
                                            Epoch epoch) const {
  ALPHEUS_RETURN_IF_ERROR(CheckNotDeleted());
  const Epoch promised = state_.superline.promised_epoch;
  if (epoch == promised) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(options_.name, ": ", call, " of epoch ", epoch.value,
                   " refused: promised is epoch ", promised.value,
                   ". Ask for a promise of an epoch above it"));
}

template <Persistence P>
absl::Status LocalReplica<P>::BeginRepair(Epoch epoch) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("repair", epoch));
  if (epoch == state_.superline.log_epoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": epoch ", epoch.value,
        " is installed already, and acknowledged records must stay. Open a "
        "later epoch"));
  }
  if (state_.superline.repairing) return absl::OkStatus();
  return MarkRepairing();
}

template <Persistence P>
absl::Status LocalReplica<P>::RaiseCeiling(Epoch epoch, RingOffset ceiling) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("a ceiling", epoch));
  const Superline& found = state_.superline;
  if (ceiling.value % kLineBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": epoch ", epoch.value, ": no line begins at offset ",
        ceiling.value, ". Nothing was changed; the sender is faulty"));
  }
  if (ceiling != RingOffset(0)) ALPHEUS_RETURN_IF_ERROR(ForgetPlace());
  ceiling = std::min(ceiling, found.head_offset + found.ring_capacity);
  if (ceiling <= found.ceiling) return absl::OkStatus();
  Superline next = found;
  next.ceiling = ceiling;
  return UpdateSuperline(next);
}

// REP8. Bytes that the repair copies before the place are only visible at
// first. The repair may be cut off. Then a report of another process would
// begin at the place once more, and its installation would persist nothing
// before it.
template <Persistence P>
absl::Status LocalReplica<P>::ForgetPlace() {
  const Lsn place = state_.proven_place().lsn;
  const bool is_named_before = place > state_.superline.head_lsn &&
                               reported_from_.value_or(Lsn(0)) < place;
  if (!is_named_before) return absl::OkStatus();
  EndWork();
  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  const Epoch epoch = state_.superline.log_epoch;
  return OfMedium(
      Installer<P>(pmem_, region_, state_)
          .RenewWatermarks({epoch, state_.watermarks.Proven(epoch), {}}));
}

template <Persistence P>
absl::Status LocalReplica<P>::MarkRepairing() {
  Superline next = state_.superline;
  next.repairing = true;
  return UpdateSuperline(next);
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckInstallable(
    const Installation& installation) const {
  const Superline& found = state_.superline;
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("install", installation.epoch));
  if (installation.epoch < found.log_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.name, ": epoch ", installation.epoch.value,
                     " can't be installed over epoch ", found.log_epoch.value,
                     ". Open a later epoch"));
  }
  if (installation.epoch == found.log_epoch) {
    ALPHEUS_RETURN_IF_ERROR(CheckNothingGoesBack(installation));
  }
  return CheckMembership(installation);
}

// REP7.
template <Persistence P>
absl::Status LocalReplica<P>::CheckMembership(
    const Installation& installation) const {
  const Superline& found = state_.superline;
  const Configuration& next = ConfigurationWith(installation);
  if (!Names(next, {found.node, found.incarnation})) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": configuration ", next.id, " does not name node ",
        found.node.value, " with incarnation ", absl::Hex(found.incarnation),
        ": the replica is blank, and joins by a change of members only"));
  }
  const bool is_older = next.id < found.configuration.id;
  const bool is_another =
      installation.epoch == found.log_epoch && next != found.configuration;
  if (!is_older && !is_another) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      options_.name, ": epoch ", installation.epoch.value,
      " can't be installed with configuration ", next.id,
      is_older ? ", which is older than " : ", which is another one than ",
      found.configuration.id, " of epoch ", found.log_epoch.value,
      ". Nothing was changed; open the log with the newest list of members"));
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckNothingGoesBack(
    const Installation& installation) const {
  const std::vector<EpochEntry>& entries = installation.table.entries();
  const bool is_same_epoch = !entries.empty() &&
                             !state_.table.entries().empty() &&
                             entries.back() == state_.table.entries().back();
  const Lsn proven = state_.ProvenLsn();
  if (is_same_epoch && installation.head.lsn >= state_.head().lsn &&
      installation.end.lsn > proven &&
      installation.ceiling >= state_.superline.ceiling) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      options_.name, ": epoch ", installation.epoch.value,
      " is installed already, with the head ", DescribePosition(state_.head()),
      ", persisted records up to LSN ", proven.value, " and the ceiling ",
      state_.superline.ceiling.value, "; a log from ",
      DescribePosition(installation.head), " to ",
      DescribePosition(installation.end), " with the ceiling ",
      installation.ceiling.value,
      is_same_epoch ? "" : ", whose table starts the epoch elsewhere,",
      " would take some of it back. Nothing was changed; open a later epoch"));
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckPositions(
    const Installation& installation) const {
  const LogPosition& head = installation.head;
  const LogPosition& end = installation.end;
  const bool possible =
      HasRoom(head) && HasRoom(end) && Follows(head, end) &&
      end.offset <= installation.ceiling &&
      installation.ceiling.value % kLineBytes == 0 &&
      installation.ceiling - head.offset <= state_.superline.ring_capacity &&
      (Follows(state_.head(), head) || Follows(head, state_.head()));
  if (possible) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options_.name, ": epoch ", installation.epoch.value, ": a log from ",
      DescribePosition(head), " to ", DescribePosition(end),
      " with the ceiling ", installation.ceiling.value,
      " is impossible in a ring of ", state_.superline.ring_capacity,
      " bytes whose head is ", DescribePosition(state_.head()),
      ". Nothing was changed; the sender is faulty"));
}

template <Persistence P>
absl::StatusOr<EpochTable> LocalReplica<P>::CheckTable(
    const Installation& installation) const {
  // Decoded from its bytes, so that its keys are those of this log.
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
      Follows(PositionOf(entries.back()), end) &&
      std::all_of(entries.begin(), entries.end(), is_possible);
  if (!possible) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": the epoch table of epoch ", installation.epoch.value,
        " with ", entries.size(), " entries does not open it at or before ",
        DescribePosition(end), ". Nothing was changed; the sender is faulty"));
  }
  if (entries.size() > state_.superline.table_capacity) {
    return absl::ResourceExhaustedError(absl::StrCat(
        options_.name, ": the epoch table is full: ", entries.size(),
        " entries, room for ", state_.superline.table_capacity,
        ". Nothing was changed. Clean the oldest records, so that the log "
        "starts after LSN ",
        entries[1].start_lsn.value - 1, ", and open it again"));
  }
  return table;
}

template <Persistence P>
absl::Status LocalReplica<P>::CheckInstallation(
    const Installation& installation) const {
  ALPHEUS_RETURN_IF_ERROR(CheckInstallable(installation));
  ALPHEUS_RETURN_IF_ERROR(CheckPositions(installation));
  return CheckRoomToContinue(options_.name, SuperlineWith(installation),
                             superline_seq_ + 1, installation.end);
}

template <Persistence P>
Superline LocalReplica<P>::SuperlineWith(
    const Installation& installation) const {
  Superline next = state_.superline;
  next.log_epoch = installation.epoch;
  next.repairing = false;
  next.table_seq = state_.superline.table_seq + 1;
  next.configuration = ConfigurationWith(installation);
  next.head_lsn = installation.head.lsn;
  next.head_offset = installation.head.offset;
  next.head_chain = installation.head.chain;
  next.ceiling = installation.ceiling;
  return next;
}

template <Persistence P>
absl::Status LocalReplica<P>::StartInstall(const Installation& installation) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckInstallation(installation));
  ALPHEUS_ASSIGN_OR_RETURN(EpochTable table, CheckTable(installation));
  work_ = std::make_unique<Work>();
  work_->installation = installation;
  work_->installation.table = std::move(table);
  const LogPosition start = ReadingStart(work_->installation);
  work_->flushed = start.offset;
  work_->flush_end = installation.end.offset;
  work_->reading = std::make_unique<LogReading>(options_.name, ring(),
                                                state_.superline.ring_offset,
                                                work_->installation, start);
  return absl::OkStatus();
}

// A repair copies records after the place, or before the own head: between the
// two a replica holds all records of the log (REP8). If a replica knows
// nothing, any of its records may have been overwritten. At least one record is
// read, so that the watermarks can name its place. A place outside of the log,
// by a region or a table that was made to look right, is not taken.
template <Persistence P>
LogPosition LocalReplica<P>::ReadingStart(
    const Installation& installation) const {
  const LogPosition& head = installation.head;
  const Superline& found = state_.superline;
  const bool knows = !found.repairing && !suspect_ && !IsBlank(found);
  if (!knows || head.lsn < found.head_lsn) return head;
  const LogPosition place = SharedPlace(state_.table, state_.proven_place(),
                                        installation.table, head);
  const bool is_far =
      place.lsn < installation.end.lsn && place.offset > head.offset &&
      place.offset < installation.end.offset &&
      place.offset - head.offset > options_.read_whole_bytes_max;
  return is_far ? place : head;
}

// Installs, in one step, the log that was read in slices.
template <Persistence P>
absl::Status LocalReplica<P>::Commit() {
  const Installation& installation = work_->installation;
  const EpochTable& table = installation.table;
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckInstallation(installation));
  const uint64_t seq = superline_seq_ + 1;
  const Superline next = SuperlineWith(installation);
  const std::vector<DamagedPad>& pads = work_->reading->damaged_pads();

  Installer<P> installer(pmem_, region_, state_);
  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.InstallEpoch(table, next, seq)));
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.RenewWatermarks(
      {next.log_epoch, installation.end.lsn - 1, work_->reading->last()})));
  if (!pads.empty()) {
    installer.RewritePads(table, pads);
    ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.Fence()));
  }
  suspect_ = false;
  state_.superline = next;
  state_.table = table;
  superline_seq_ = seq;
  reported_from_.reset();
  installed_ = InstalledLog{work_->reading->last(), installation.end,
                            work_->reading->start(), work_->reading->index()};
  return absl::OkStatus();
}

template <Persistence P>
absl::Status LocalReplica<P>::Install(const Installation& installation) {
  ALPHEUS_RETURN_IF_ERROR(StartInstall(installation));
  return ContinueToTheEnd();
}

template <Persistence P>
absl::Status LocalReplica<P>::PublishBounds(Epoch epoch,
                                            const RingBounds& bounds) {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_RETURN_IF_ERROR(CheckPromised("head", epoch));
  if (epoch != state_.superline.log_epoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.name, ": head of epoch ", epoch.value,
        " refused: installed is epoch ", state_.superline.log_epoch.value,
        ". Install the epoch first"));
  }
  const Superline& found = state_.superline;
  const bool is_behind = bounds.head.lsn < found.head_lsn;
  const LogPosition head = is_behind ? state_.head() : bounds.head;
  const RingOffset ceiling = std::max(bounds.ceiling, found.ceiling);
  if (head == state_.head() && ceiling == found.ceiling) {
    return absl::OkStatus();
  }
  const bool is_possible =
      HasRoom(head) && (is_behind || Follows(state_.head(), head)) &&
      ceiling >= head.offset && ceiling - head.offset <= found.ring_capacity &&
      bounds.ceiling.value % kLineBytes == 0;
  if (!is_possible) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_.name, ": epoch ", epoch.value, ": a head of ",
        DescribePosition(bounds.head), " with the ceiling ",
        bounds.ceiling.value, " is impossible: the present one is ",
        DescribePosition(state_.head()), " with the ceiling ",
        found.ceiling.value, ". Nothing was changed; the sender is faulty"));
  }
  Superline next = found;
  next.head_lsn = head.lsn;
  next.head_offset = head.offset;
  next.head_chain = head.chain;
  next.ceiling = ceiling;
  return UpdateSuperline(next);
}

template <Persistence P>
absl::StatusOr<int> LocalReplica<P>::RepairCopies() {
  ALPHEUS_RETURN_IF_ERROR(Begin());
  ALPHEUS_ASSIGN_OR_RETURN(int repaired, RepairCopiesOnMedium());
  if (!state_.table_cell.copies_agree()) {
    ALPHEUS_RETURN_IF_ERROR(RepairTable());
    ++repaired;
  }
  if (!state_.superline_cell.copies_agree()) {
    ALPHEUS_RETURN_IF_ERROR(UpdateSuperline(Superline(state_.superline)));
    ++repaired;
  }
  return repaired;
}

template <Persistence P>
absl::StatusOr<int> LocalReplica<P>::RepairCopiesOnMedium() {
  int repaired = 0;
  for (const CellPlace& place :
       {SuperlinePlace(region_), EpochTablePlace(region_, state_.superline)}) {
    const absl::StatusOr<bool> is_repaired = RepairCellOnMedium(pmem_, place);
    ALPHEUS_RETURN_IF_ERROR(OfMedium(is_repaired.status()));
    repaired += *is_repaired ? 1 : 0;
  }
  return repaired;
}

template <Persistence P>
RingLogStart LocalReplica<P>::StartOfLog() {
  ALPHEUS_CHECK(condition_ == Condition::kGood, "open (local_replica.h)");
  ALPHEUS_CHECK(installed_.has_value(),
                "only an installed log starts (P-A4.6)");
  condition_ = Condition::kOfTheLog;
  RingLogStart start;
  start.superline = state_.superline;
  start.superline_seq = superline_seq_;
  start.table = state_.table;
  start.last = installed_->last;
  start.end = installed_->end;
  start.read_from = installed_->read_from;
  start.index = installed_->index;
  return start;
}

template <Persistence P>
absl::Status LocalReplica<P>::RepairTable() {
  if (state_.table_cell.copies_agree()) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  return OfMedium(Installer<P>(pmem_, region_, state_).RepairTable());
}

template <Persistence P>
absl::Status LocalReplica<P>::UnmarkCleanClose() {
  if (*CleanCloseAddress(region_) == 0) return absl::OkStatus();
  return OfMedium(Installer<P>(pmem_, region_, state_).UnmarkCleanClose());
}

template <Persistence P>
absl::Status LocalReplica<P>::UpdateSuperline(const Superline& next) {
  EndWork();
  const uint64_t seq = superline_seq_ + 1;
  const LogPosition head{next.head_lsn, next.head_offset, next.head_chain};
  ALPHEUS_RETURN_IF_ERROR(CheckRoomToContinue(options_.name, next, seq, head));
  ALPHEUS_RETURN_IF_ERROR(UnmarkCleanClose());
  Installer<P> installer(pmem_, region_, state_);
  ALPHEUS_RETURN_IF_ERROR(OfMedium(installer.WriteSuperline(next, seq)));
  state_.superline = next;
  superline_seq_ = seq;
  return absl::OkStatus();
}

template <Persistence P>
absl::Status LocalReplica<P>::OfMedium(absl::Status status) {
  if (!status.ok()) condition_ = Condition::kMediumFailed;
  return status;
}

ALPHEUS_INSTANTIATE_CLASS(LocalReplica);

}  // namespace alpheus::recovery
