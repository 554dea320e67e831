// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/chooser.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::recovery {

using quorum::Fate;

namespace {

// The tables of the header, as data.

enum class CountsAs { kHolder, kNack, kNothing, kContradiction };
enum class Match { kAny, kYes, kNo };

struct ReportRow {
  Verdict verdict;
  Match repairing;
  Match of_highest_epoch;  // log_epoch = E
  Match below_start;       // k < start(E)
  Match owns;              // the record's epoch owns k in E's table
  CountsAs counts_as;
};

constexpr ReportRow kReportRows[] = {
    {Verdict::kHave, Match::kAny, Match::kYes, Match::kAny, Match::kYes,
     CountsAs::kHolder},
    {Verdict::kHave, Match::kAny, Match::kYes, Match::kAny, Match::kNo,
     CountsAs::kContradiction},
    {Verdict::kHave, Match::kAny, Match::kNo, Match::kYes, Match::kYes,
     CountsAs::kHolder},
    {Verdict::kHave, Match::kAny, Match::kNo, Match::kNo, Match::kYes,
     CountsAs::kNothing},
    {Verdict::kHave, Match::kAny, Match::kNo, Match::kAny, Match::kNo,
     CountsAs::kNack},
    {Verdict::kTorn, Match::kAny, Match::kAny, Match::kAny, Match::kAny,
     CountsAs::kNack},
    {Verdict::kAbsent, Match::kAny, Match::kAny, Match::kAny, Match::kAny,
     CountsAs::kNack},
    {Verdict::kUnknown, Match::kYes, Match::kNo, Match::kNo, Match::kAny,
     CountsAs::kNack},
    {Verdict::kUnknown, Match::kAny, Match::kAny, Match::kAny, Match::kAny,
     CountsAs::kNothing},
    {Verdict::kCorrupt, Match::kAny, Match::kNo, Match::kNo, Match::kAny,
     CountsAs::kNack},
    {Verdict::kCorrupt, Match::kAny, Match::kAny, Match::kAny, Match::kAny,
     CountsAs::kNothing},
};

enum class Action {
  kKeep,
  kEnd,
  kWait,
  kContradiction,
  kCorrupt,
  kTooFewKnow,
};

struct CountRow {
  Match conflict;
  std::optional<Fate> fate;  // any if not set
  Match all_reported;
  Match corrupt;
  Action action;
};

constexpr CountRow kCountRows[] = {
    {Match::kYes, {}, Match::kAny, Match::kAny, Action::kContradiction},
    {Match::kNo, Fate::kKeep, Match::kAny, Match::kAny, Action::kKeep},
    {Match::kNo, Fate::kCut, Match::kAny, Match::kAny, Action::kEnd},
    {Match::kNo, Fate::kUndecided, Match::kNo, Match::kAny, Action::kWait},
    {Match::kNo, Fate::kUndecided, Match::kYes, Match::kYes, Action::kCorrupt},
    {Match::kNo, Fate::kUndecided, Match::kYes, Match::kNo,
     Action::kTooFewKnow},
};

constexpr bool Fits(Match match, bool value) {
  return match == Match::kAny || (match == Match::kYes) == value;
}

constexpr uint32_t SizeOf(ReportSet set) {
  return static_cast<uint32_t>(std::popcount(set));
}

// Counts of the reports at one LSN.
struct Tally {
  ReportSet holders = 0;
  ReportSet nacks = 0;
  ReportSet unknown = 0;  // count as nothing
  ReportSet corrupt = 0;
  ReportSet unnamed = 0;                   // holders that do not name it
  const ReportedRecord* record = nullptr;  // of the first holder that names it
  Lsn end;                                 // all reports say the same before it
  bool conflict = false;
};

const StateReport* NewestReport(std::span<const StateReport> reports) {
  const StateReport* newest = nullptr;
  for (const StateReport& report : reports) {
    if (report.blank) continue;
    if (newest == nullptr || newest->log_epoch < report.log_epoch ||
        (newest->log_epoch == report.log_epoch &&
         newest->configuration.id < report.configuration.id)) {
      newest = &report;
    }
  }
  return newest;
}

class Chooser {
 public:
  Chooser(const quorum::QuorumSizes& sizes,
          std::span<const StateReport> reports)
      : sizes_(sizes), reports_(reports) {}

  absl::StatusOr<Decision> Run();

 private:
  absl::Status CheckSizes() const;
  absl::Status FindMembers();
  absl::Status CheckMembers() const;
  absl::Status CheckReportedOnce() const;
  absl::Status RankEpochs();
  absl::Status CheckTables() const;
  absl::Status FindHead();
  absl::Status FindStart();
  absl::Status CheckJoint(size_t index) const;
  absl::Status KeepUnread();
  absl::Status FindUnreadBytes();
  std::optional<RingOffset> OffsetOf(Lsn lsn) const;
  absl::StatusOr<bool> Step();

  CountsAs Judge(size_t index, const VerdictReader::Seen& seen) const;
  Tally Count();
  Action Decide(const Tally& tally) const;
  absl::Status CheckPlace(const ReportedRecord& record) const;
  absl::Status CheckStarts();
  void Keep(const Tally& tally);
  void FindOwner();

  Lsn lsn() const { return decision_.end.lsn; }
  bool IsOfAMember(NodeId node) const;
  bool AllReported() const;
  std::string Where(size_t index) const;
  std::string WhatIsSeen();
  absl::Status Contradiction();
  absl::Status PlacesDisagree(Lsn lsn) const;

  const quorum::QuorumSizes sizes_;
  const std::span<const StateReport> reports_;
  const Configuration* configuration_ = nullptr;
  Epoch newest_epoch_;  // epoch of newest_
  uint64_t ring_capacity_ = 0;
  std::vector<VerdictReader> readers_;
  Epoch owner_;  // owner of lsn() in E's table
  Lsn owner_end_;
  Lsn start_;  // start of E
  size_t next_start_ = 0;
  Decision decision_;
};

std::string Chooser::Where(size_t index) const {
  const StateReport& report = reports_[index];
  return absl::StrCat("node ", report.node.value, " (log epoch ",
                      report.log_epoch.value, ")");
}

// Returns one clause for each report at the LSN that can't be decided.
std::string Chooser::WhatIsSeen() {
  std::string seen;
  for (size_t i = 0; i < reports_.size(); ++i) {
    const char* verdict = Contains(decision_.members | decision_.newcomers, i)
                              ? VerdictName(readers_[i].At(lsn()).verdict)
                              : "not a member of this incarnation";
    absl::StrAppend(&seen, seen.empty() ? "" : ", ", Where(i), ": ", verdict);
  }
  return seen;
}

absl::Status Chooser::CheckSizes() const {
  const bool valid =
      1 <= sizes_.write_quorum && sizes_.write_quorum <= sizes_.replica_count &&
      1 <= sizes_.read_quorum && sizes_.read_quorum <= sizes_.replica_count &&
      sizes_.replica_count <= kMembersMax &&
      sizes_.read_quorum + sizes_.write_quorum > sizes_.replica_count;
  if (valid && reports_.size() <= 32) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "choosing with N ", sizes_.replica_count, ", W ", sizes_.write_quorum,
      ", R ", sizes_.read_quorum, " and ", reports_.size(),
      " state reports: expected 1 <= W, R <= N <= ", kMembersMax,
      ", R + W > N and at most 32 reports. Fix the configuration"));
}

// Finds the reports that count: those of incarnations that the configuration
// names. It changes only together with the log epoch.
absl::Status Chooser::FindMembers() {
  const StateReport* const newest = NewestReport(reports_);
  if (newest == nullptr) return absl::OkStatus();
  configuration_ = &newest->configuration;
  newest_epoch_ = newest->log_epoch;
  decision_.configuration = *configuration_;
  for (size_t i = 0; i < reports_.size(); ++i) {
    const StateReport& report = reports_[i];
    if (!Names(*configuration_, {report.node, report.incarnation})) continue;
    const ReportSet bit = ReportSet{1} << i;
    if (report.blank) {
      if (!report.suspect) decision_.newcomers |= bit;
      continue;
    }
    decision_.members |= bit;
    if (!report.suspect) decision_.counts |= bit;
  }
  return CheckMembers();
}

absl::Status Chooser::CheckMembers() const {
  if (configuration_->replica_count != sizes_.replica_count ||
      configuration_->write_quorum != sizes_.write_quorum) {
    return absl::FailedPreconditionError(
        absl::StrCat("configuration ", configuration_->id,
                     " of the replicas has N = ", configuration_->replica_count,
                     " and W = ", configuration_->write_quorum, ", expected ",
                     sizes_.replica_count, " and ", sizes_.write_quorum,
                     ". Open the log with the newest configuration"));
  }
  ALPHEUS_RETURN_IF_ERROR(CheckReportedOnce());
  const StateReport* first = nullptr;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.members, i)) continue;
    if (first == nullptr) first = &reports_[i];
    const StateReport& report = reports_[i];
    if (report.log_epoch == newest_epoch_ &&
        report.configuration != *configuration_) {
      return absl::FailedPreconditionError(absl::StrCat(
          Where(i), " has another configuration, ", report.configuration.id,
          ", than ", configuration_->id,
          " of that epoch elsewhere. Format the members of a log with one "
          "command"));
    }
    if (report.ring_capacity != first->ring_capacity) {
      return absl::FailedPreconditionError(absl::StrCat(
          Where(i), " has a ring of ", report.ring_capacity,
          " bytes, expected ", first->ring_capacity,
          " as the others. Replace the replica by one of that capacity"));
    }
  }
  return absl::OkStatus();
}

// P-H17. A blank replica counts too (chooser.h).
absl::Status Chooser::CheckReportedOnce() const {
  const ReportSet named = decision_.members | decision_.newcomers;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(named, i)) continue;
    for (size_t j = 0; j < i; ++j) {
      if (!Contains(named, j)) continue;
      if (reports_[j].node != reports_[i].node) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          Where(i), " has two state reports with incarnation ",
          reports_[i].incarnation,
          ", expected one report of each replica. Two regions with one "
          "identity: remove the copy"));
    }
  }
  return absl::OkStatus();
}

bool Chooser::IsOfAMember(NodeId node) const {
  if (configuration_ == nullptr) return true;
  const std::vector<Member>& members = configuration_->members;
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.node == node; });
}

// Returns true if no node is left that could say more. A node that came back
// blank has no earlier incarnation that could still report.
bool Chooser::AllReported() const {
  uint32_t nodes = 0;
  for (size_t i = 0; i < reports_.size(); ++i) {
    const auto same_node = [&](const StateReport& report) {
      return report.node == reports_[i].node;
    };
    const auto before = reports_.first(i);
    if (!IsOfAMember(reports_[i].node)) continue;
    nodes += std::none_of(before.begin(), before.end(), same_node) ? 1 : 0;
  }
  return nodes >= sizes_.replica_count;
}

// Finds E: the highest log epoch, never the highest promise, which is given
// before anything is known of the log (P-H4).
absl::Status Chooser::RankEpochs() {
  const StateReport* highest = nullptr;
  uint64_t highest_rank = 0;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.members, i)) continue;
    const StateReport& report = reports_[i];
    const uint64_t rank = report.log_epoch.value;
    // Takes the longest of equal tables: an entry may have left elsewhere.
    if (highest == nullptr || rank > highest_rank ||
        (rank == highest_rank &&
         report.table.entries().size() > highest->table.entries().size())) {
      highest = &report;
      highest_rank = rank;
    }
  }
  decision_.epoch = highest->log_epoch;
  decision_.table = highest->table;
  const std::vector<EpochEntry>& table = decision_.table.entries();
  ALPHEUS_RETURN_IF_ERROR(CheckTables());
  start_ = table.empty() ? Lsn(1) : table.back().start_lsn;
  return absl::OkStatus();
}

// Checks that each epoch starts at one place in all tables, as it has one
// opener (P-INV-4). Tables of one log epoch differ at most by entries that
// left.
absl::Status Chooser::CheckTables() const {
  const std::vector<EpochEntry>& table = decision_.table.entries();
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.members, i)) continue;
    const bool of_highest = reports_[i].log_epoch == decision_.epoch;
    for (const EpochEntry& entry : reports_[i].table.entries()) {
      const auto same_epoch = std::find_if(
          table.begin(), table.end(),
          [&](const EpochEntry& e) { return e.epoch == entry.epoch; });
      if (same_epoch == table.end() ? !of_highest : *same_epoch == entry) {
        continue;
      }
      return absl::DataLossError(absl::StrCat(
          Where(i), " starts epoch ", entry.epoch.value, " at LSN ",
          entry.start_lsn.value, ", offset ", entry.start_offset.value,
          ", which the epoch table of log epoch ", decision_.epoch.value,
          " does not; expected one start of each epoch. Two logs with one "
          "identity: remove the replica that is not a member"));
    }
  }
  return absl::OkStatus();
}

// Finds the highest head: below it everything was cleaned, wherever it lies.
absl::Status Chooser::FindHead() {
  std::optional<size_t> highest;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.members, i)) continue;
    const LogPosition& head = reports_[i].head;
    const bool is_higher = highest && reports_[*highest].head.lsn < head.lsn;
    if (!highest || is_higher) highest = i;
  }
  decision_.head = reports_[*highest].head;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.members, i)) continue;
    const LogPosition& head = reports_[i].head;
    if (head.lsn != decision_.head.lsn || head == decision_.head) continue;
    return absl::DataLossError(absl::StrCat(
        Where(i), " has the head LSN ", head.lsn.value, " at offset ",
        head.offset.value, " with chain ", head.chain, ", expected offset ",
        decision_.head.offset.value, " and chain ", decision_.head.chain,
        " as ", Where(*highest),
        ". Two logs with one identity: remove the replica that is not a "
        "member"));
  }
  ring_capacity_ = reports_[*highest].ring_capacity;
  decision_.end = decision_.head;
  return absl::OkStatus();
}

// Finds the last place that a report shares with E's table; choosing begins
// there.
absl::Status Chooser::FindStart() {
  LogPosition& start = decision_.chosen_from;
  start = decision_.head;
  for (size_t i = 0; i < reports_.size(); ++i) {
    const StateReport& report = reports_[i];
    LogPosition shared = decision_.head;
    if (Contains(decision_.counts, i) && report.knows()) {
      shared = SharedPlace(report.table, report.start(), decision_.table,
                           decision_.head);
    }
    decision_.shared.push_back(shared);
    if (start.lsn < shared.lsn) start = shared;
  }
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.counts, i) || !reports_[i].knows()) continue;
    ALPHEUS_RETURN_IF_ERROR(CheckJoint(i));
  }
  return absl::OkStatus();
}

// Checks that the records that a report names, from its place on and without a
// gap, lead to the place where choosing begins.
absl::Status Chooser::CheckJoint(size_t index) const {
  const StateReport& report = reports_[index];
  LogPosition at = report.start();
  const LogPosition& start = decision_.chosen_from;
  const bool is_shared = decision_.shared[index] == at;
  if (!is_shared || at.lsn < decision_.head.lsn) return absl::OkStatus();
  while (at.lsn < start.lsn) {
    const ReportedRecord* const record = FindRecord(report, at.lsn);
    const EpochEntry* const owner = decision_.table.Owner(at.lsn);
    if (record == nullptr || owner == nullptr ||
        owner->epoch != record->epoch) {
      return absl::OkStatus();
    }
    at = {at.lsn + 1, record->end(),
          ExtendChain(at.chain, record->header_checksum)};
  }
  if (at.lsn != start.lsn || at == start) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      Where(index), " has records that lead to LSN ", at.lsn.value,
      " at offset ", at.offset.value, " with chain ", at.chain,
      ", expected offset ", start.offset.value, " and chain ", start.chain,
      " as another replica proves. Two histories in one epoch; keep all "
      "regions and restore the log from a copy"));
}

// Returns where the records before `lsn` end, which lies before the place where
// choosing begins, and where the holders change. A PAD before the record may
// already lie before that place. None: no report says it, which is so only
// where two reports contradict each other.
std::optional<RingOffset> Chooser::OffsetOf(Lsn lsn) const {
  for (const LogPosition& known : {decision_.head, decision_.chosen_from}) {
    if (known.lsn == lsn) return known.offset;
  }
  const EpochEntry* const owner = decision_.table.Owner(lsn);
  if (owner != nullptr && owner->start_lsn == lsn) return owner->start_offset;
  std::optional<RingOffset> begin;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.counts, i)) continue;
    if (decision_.shared[i].lsn == lsn) return decision_.shared[i].offset;
    const ReportedRecord* const before = FindRecord(reports_[i], lsn - 1);
    const EpochEntry* const its = decision_.table.Owner(lsn - 1);
    if (before != nullptr && its != nullptr && before->epoch == its->epoch) {
      return before->end();
    }
    const ReportedRecord* const record = FindRecord(reports_[i], lsn);
    if (record != nullptr && owner != nullptr &&
        record->epoch == owner->epoch) {
      begin = record->offset;
    }
  }
  return begin;
}

// Keeps all from the head to the place where choosing begins.
absl::Status Chooser::KeepUnread() {
  const LogPosition start = decision_.chosen_from;
  std::vector<KeptRun>& kept = decision_.kept;
  while (lsn() < start.lsn) {
    FindOwner();
    const Tally tally = Count();
    if (tally.conflict) return Contradiction();
    // The replica that shares the last place holds all before it (chooser.h),
    // unless its report contradicts itself.
    if (tally.holders == 0) return PlacesDisagree(lsn());
    const Lsn end = std::min(tally.end, start.lsn);
    if (!kept.empty() && kept.back().epoch == owner_ &&
        kept.back().holders == tally.holders) {
      kept.back().end = end;
    } else {
      kept.push_back({lsn(), end, owner_, tally.holders, std::nullopt});
    }
    decision_.end.lsn = end;
  }
  ALPHEUS_RETURN_IF_ERROR(FindUnreadBytes());
  decision_.end = start;
  while (next_start_ < decision_.table.entries().size() &&
         decision_.table.entries()[next_start_].start_lsn < start.lsn) {
    ++next_start_;
  }
  return absl::OkStatus();
}

// Finds where the unread runs lie. They are bytes to be copied, so their bounds
// must be possible whatever tables and places say (CH5).
absl::Status Chooser::FindUnreadBytes() {
  const RingOffset lap = decision_.head.offset + ring_capacity_;
  RingOffset at = decision_.head.offset;
  for (KeptRun& run : decision_.kept) {
    const std::optional<RingOffset> end = OffsetOf(run.end);
    const bool is_possible = end && *end > at && *end <= lap &&
                             end->value % kLineBytes == 0 &&
                             run.end - run.first <= (*end - at) / kLineBytes;
    if (!is_possible) return PlacesDisagree(run.end);
    run.unread = KeptBytes{at, *end};
    at = *end;
  }
  return absl::OkStatus();
}

CountsAs Chooser::Judge(size_t index, const VerdictReader::Seen& seen) const {
  const StateReport& report = reports_[index];
  const bool owns = seen.verdict == Verdict::kHave && seen.epoch == owner_;
  const bool knows_only_itself = report.repairing || report.blank;
  for (const ReportRow& row : kReportRows) {
    if (row.verdict == seen.verdict && Fits(row.repairing, knows_only_itself) &&
        Fits(row.of_highest_epoch, report.log_epoch == decision_.epoch) &&
        Fits(row.below_start, lsn() < start_) && Fits(row.owns, owns)) {
      return row.counts_as;
    }
  }
  ALPHEUS_CHECK(false, "every report has a row (chooser.h)");
  return CountsAs::kNothing;
}

Tally Chooser::Count() {
  Tally tally;
  tally.end = owner_end_;
  for (size_t i = 0; i < reports_.size(); ++i) {
    const ReportSet bit = ReportSet{1} << i;
    if (!Contains(decision_.counts | decision_.newcomers, i)) continue;
    const VerdictReader::Seen seen = readers_[i].At(lsn());
    if (seen.verdict == Verdict::kCorrupt) tally.corrupt |= bit;
    tally.end =
        std::min(tally.end, seen.record != nullptr ? lsn() + 1 : seen.end);
    switch (Judge(i, seen)) {
      case CountsAs::kHolder:
        tally.holders |= bit;
        if (seen.record == nullptr) {
          tally.unnamed |= bit;
          break;
        }
        if (tally.record == nullptr) tally.record = seen.record;
        if (*tally.record != *seen.record) tally.conflict = true;
        break;
      case CountsAs::kNack:
        tally.nacks |= bit;
        break;
      case CountsAs::kContradiction:
        tally.conflict = true;
        break;
      case CountsAs::kNothing:
        tally.unknown |= bit;
        break;
    }
  }
  return tally;
}

Action Chooser::Decide(const Tally& tally) const {
  const Fate fate = quorum::FateOf(
      sizes_,
      {SizeOf(tally.holders), SizeOf(tally.nacks), SizeOf(tally.unknown)});
  for (const CountRow& row : kCountRows) {
    if (Fits(row.conflict, tally.conflict) && row.fate.value_or(fate) == fate &&
        Fits(row.all_reported, AllReported()) &&
        Fits(row.corrupt, tally.corrupt != 0)) {
      return row.action;
    }
  }
  ALPHEUS_CHECK(false, "every count has a row (chooser.h)");
  return Action::kWait;
}

// Checks that the record follows the one before it, or a PAD at the start of
// the ring.
absl::Status Chooser::CheckPlace(const ReportedRecord& record) const {
  const RingOffset at = decision_.end.offset;
  const uint64_t place = at.value % ring_capacity_;
  const RingOffset wrapped = place == 0 ? at : at + (ring_capacity_ - place);
  if (record.offset == at || record.offset == wrapped) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "epoch ", record.epoch.value, ", LSN ", lsn().value,
      ": the record lies at offset ", record.offset.value, ", expected ",
      at.value,
      ", right after the record before it. The log can't be put together "
      "from these replicas; restore one of them from a copy"));
}

// Checks place and chain at each LSN where E's table starts an epoch (P-INV-8).
absl::Status Chooser::CheckStarts() {
  const std::vector<EpochEntry>& table = decision_.table.entries();
  const LogPosition& at = decision_.end;
  for (; next_start_ < table.size() && table[next_start_].start_lsn <= at.lsn;
       ++next_start_) {
    const EpochEntry& entry = table[next_start_];
    if (entry.start_lsn < at.lsn) continue;
    if (entry.start_chain == at.chain && entry.start_offset == at.offset) {
      continue;
    }
    return absl::DataLossError(absl::StrCat(
        "epoch ", entry.epoch.value, ", LSN ", at.lsn.value,
        ": what the replicas hold before it ends at offset ", at.offset.value,
        " with chain ", at.chain, ", expected offset ",
        entry.start_offset.value, " and chain ", entry.start_chain,
        " by the epoch table. Records of two histories; restore a replica "
        "from a copy"));
  }
  return absl::OkStatus();
}

void Chooser::Keep(const Tally& tally) {
  std::vector<KeptRun>& kept = decision_.kept;
  const ReportedRecord& record = *tally.record;
  if (!kept.empty() && kept.back().epoch == record.epoch &&
      kept.back().holders == tally.holders && !kept.back().unread) {
    kept.back().end = lsn() + 1;
  } else {
    kept.push_back(
        {lsn(), lsn() + 1, record.epoch, tally.holders, std::nullopt});
  }
  LogPosition& end = decision_.end;
  end.lsn = end.lsn + 1;
  end.offset = record.end();
  end.chain = ExtendChain(end.chain, record.header_checksum);
}

void Chooser::FindOwner() {
  if (lsn() < owner_end_) return;
  const EpochEntry* const entry = decision_.table.Owner(lsn());
  owner_ = entry == nullptr ? Epoch(0) : entry->epoch;
  const auto& table = decision_.table.entries();
  owner_end_ = entry != nullptr ? decision_.table.EndOf(entry)
               : !table.empty() ? table.front().start_lsn
                                : kEndOfLsns;
}

absl::Status Chooser::Contradiction() {
  return absl::DataLossError(absl::StrCat(
      "epoch ", owner_.value, ", LSN ", lsn().value, ": ", WhatIsSeen(),
      ", but these are different records of that epoch, expected one. Two "
      "histories in one epoch; keep all regions and restore the log from a "
      "copy"));
}

// Says that places and epoch tables of the reports can't be of one log.
absl::Status Chooser::PlacesDisagree(Lsn lsn) const {
  std::string said;
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!Contains(decision_.counts, i) || !reports_[i].knows()) continue;
    const LogPosition& start = reports_[i].start();
    absl::StrAppend(&said, said.empty() ? "" : ", ", Where(i),
                    ": all records before LSN ", start.lsn.value, " at offset ",
                    start.offset.value);
  }
  return absl::DataLossError(absl::StrCat(
      "LSN ", lsn.value, ": ", said,
      "; with these places and epoch tables it lies nowhere between offset ",
      decision_.head.offset.value,
      " and a lap after it, expected one place. A "
      "program is faulty; nothing was changed but promises. Open the log "
      "without that replica"));
}

// Decides one LSN. Returns true if the log continues.
absl::StatusOr<bool> Chooser::Step() {
  FindOwner();
  ALPHEUS_RETURN_IF_ERROR(CheckStarts());
  const Tally tally = Count();
  // From the last shared place on each holder names its record (CH5).
  if (tally.unnamed != 0) return PlacesDisagree(lsn());
  switch (Decide(tally)) {
    case Action::kKeep:
      ALPHEUS_RETURN_IF_ERROR(CheckPlace(*tally.record));
      Keep(tally);
      return true;
    case Action::kEnd:
      decision_.outcome = Outcome::kChosen;
      decision_.nacks = tally.nacks;
      return false;
    case Action::kWait:
      decision_.reason = absl::StrCat(
          "epoch ", owner_.value, ", LSN ", lsn().value, ": ", WhatIsSeen(),
          "; no replica that reported has the record, and ",
          std::popcount(tally.nacks), " of ", quorum::NackQuorum(sizes_),
          " say that it was never acknowledged. Start more replicas");
      return false;
    case Action::kContradiction:
      return Contradiction();
    case Action::kCorrupt:
      return absl::DataLossError(absl::StrCat(
          "epoch ", owner_.value, ", LSN ", lsn().value, ": ", WhatIsSeen(),
          "; a record that was acknowledged can be read on no replica, "
          "expected at least one. No older copy helps. \"Damage on all "
          "replicas\" in docs/use/operating.md says how to go on with the "
          "rest"));
    case Action::kTooFewKnow:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "epoch ", owner_.value, ", LSN ", lsn().value, ": ", WhatIsSeen(), "; ",
      std::popcount(tally.nacks),
      " replicas say that it was never "
      "acknowledged, expected ",
      quorum::NackQuorum(sizes_),
      ". Too many replicas are new, suspect or half repaired; restore one "
      "from a copy"));
}

absl::StatusOr<Decision> Chooser::Run() {
  ALPHEUS_RETURN_IF_ERROR(CheckSizes());
  ALPHEUS_RETURN_IF_ERROR(FindMembers());
  // A repairing replica counts here: its superline says truly which epoch it
  // installed last, and R reports are needed for nothing else. A newcomer
  // counts, too: it says truly that it installed none. opening_quorums.h
  // decides whether that is enough.
  const auto counted = static_cast<uint32_t>(
      std::popcount(decision_.counts | decision_.newcomers));
  if (counted < sizes_.read_quorum) {
    const std::string seen =
        absl::StrCat(counted,
                     " replicas reported that are neither new nor suspect, "
                     "expected at least ",
                     sizes_.read_quorum, " of ", sizes_.replica_count);
    if (AllReported()) {
      return absl::FailedPreconditionError(absl::StrCat(
          seen,
          ". Too many replicas may have lost what they acknowledged; "
          "restore one from a copy"));
    }
    decision_.reason = absl::StrCat(seen, ". Start more replicas");
    return std::move(decision_);
  }
  ALPHEUS_RETURN_IF_ERROR(RankEpochs());
  ALPHEUS_RETURN_IF_ERROR(FindHead());
  for (const StateReport& report : reports_) readers_.emplace_back(report);
  ALPHEUS_RETURN_IF_ERROR(FindStart());
  ALPHEUS_RETURN_IF_ERROR(KeepUnread());
  for (bool more = true; more;) {
    ALPHEUS_ASSIGN_OR_RETURN(more, Step());
  }
  return std::move(decision_);
}

}  // namespace

const Configuration* NewestConfiguration(std::span<const StateReport> reports) {
  const StateReport* const newest = NewestReport(reports);
  return newest == nullptr ? nullptr : &newest->configuration;
}

absl::StatusOr<Decision> Choose(const quorum::QuorumSizes& sizes,
                                std::span<const StateReport> reports) {
  return Chooser(sizes, reports).Run();
}

const ReportedRecord& RecordAt(std::span<const StateReport> reports,
                               const KeptRun& run, Lsn lsn) {
  const ReportedRecord* const record =
      FindRecord(reports[std::countr_zero(run.holders)], lsn);
  ALPHEUS_CHECK(record != nullptr, "holders have (chooser.h)");
  return *record;
}

}  // namespace alpheus::recovery
