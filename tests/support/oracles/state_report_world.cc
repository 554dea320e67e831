// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/state_report_world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"

namespace alpheus::testing {

using recovery::StateReport;

namespace {

constexpr Uuid kLogId{7, 7};

uint32_t ChecksumOf(int epoch, int lsn, int variant) {
  const int number = (epoch * 1000 + lsn) * 10 + variant;
  return static_cast<uint32_t>(Mix(static_cast<uint64_t>(number)));
}

// Before `lsn`, of a log whose records are those that the table owns.
uint64_t ChainBefore(const std::vector<std::pair<int, int>>& table, int lsn) {
  uint64_t chain = 0;
  for (int k = 1; k < lsn; ++k) {
    chain = ExtendChain(chain,
                        ChecksumOf(naive::OwnerOf(table, k), k, /*variant=*/0));
  }
  return chain;
}

RingOffset OffsetOf(int lsn) {
  return RingOffset(static_cast<uint64_t>(lsn - 1) * kLineBytes);
}

EpochTable TableOf(const std::vector<std::pair<int, int>>& table) {
  EpochTable result = EpochTable::Empty(kLogId);
  for (const auto& [epoch, start] : table) {
    result =
        result.With({Epoch(epoch), static_cast<uint64_t>(epoch) * 11,
                     Lsn(start), OffsetOf(start), ChainBefore(table, start)},
                    Lsn(0));
  }
  return result;
}

recovery::Verdict VerdictOf(char letter) {
  switch (letter) {
    case 't':
      return recovery::Verdict::kTorn;
    case 'c':
      return recovery::Verdict::kCorrupt;
    case 'u':
      return recovery::Verdict::kUnknown;
    default:
      return recovery::Verdict::kAbsent;
  }
}

}  // namespace

StateReport ReportOf(const naive::Reply& reply,
                     const quorum::QuorumSizes& sizes) {
  StateReport report;
  report.node = NodeId(reply.node);
  report.incarnation = (reply.blank ? 900u : 100u) + reply.node;
  report.configuration.replica_count = sizes.replica_count;
  report.configuration.write_quorum = sizes.write_quorum;
  for (uint32_t node = 1; node <= sizes.replica_count; ++node) {
    report.configuration.members.push_back(
        {NodeId(node), 100u + static_cast<uint64_t>(node)});
  }
  report.ring_capacity = kWorldRingBytes;
  report.log_epoch = Epoch(reply.log_epoch);
  report.promised_before = Epoch(reply.log_epoch);
  report.table = TableOf(reply.table);
  report.head = {Lsn(reply.head), OffsetOf(reply.head),
                 ChainBefore(reply.table, reply.head)};
  report.blank = reply.blank;
  report.suspect = reply.suspect;
  report.repairing = reply.repairing;
  for (int lsn = reply.head; lsn <= static_cast<int>(reply.cells.size());
       ++lsn) {
    const naive::Cell& cell = reply.cells[lsn - 1];
    if (cell.verdict == 'h') {
      recovery::AddRecord(&report,
                          {Epoch(cell.epoch), OffsetOf(lsn),
                           ChecksumOf(cell.epoch, lsn, cell.variant), 1});
    } else {
      recovery::AddVerdict(&report, VerdictOf(cell.verdict));
    }
  }
  return report;
}

std::vector<StateReport> ReportsOf(const std::vector<naive::Reply>& replies,
                                   const quorum::QuorumSizes& sizes) {
  std::vector<StateReport> reports;
  reports.reserve(replies.size());
  for (const naive::Reply& reply : replies) {
    reports.push_back(ReportOf(reply, sizes));
  }
  return reports;
}

StateReport Shortened(const StateReport& report, uint64_t records) {
  if (!report.knows()) return report;
  StateReport shortened = report;
  shortened.runs.clear();
  shortened.records.clear();
  LogPosition place = report.head;
  for (; records > 0; --records) {
    const recovery::ReportedRecord* const record =
        recovery::FindRecord(report, place.lsn);
    if (record == nullptr) break;
    place = {place.lsn + 1, record->end(),
             ExtendChain(place.chain, record->header_checksum)};
  }
  if (place != report.head) shortened.place = place;
  for (const recovery::VerdictRun& run : report.runs) {
    for (Lsn lsn = std::max(run.first, place.lsn); lsn < run.end;
         lsn = lsn + 1) {
      if (run.verdict == recovery::Verdict::kHave) {
        recovery::AddRecord(&shortened, *recovery::FindRecord(report, lsn));
      } else {
        recovery::AddVerdict(&shortened, run.verdict);
      }
    }
  }
  return shortened;
}

naive::Reply ReplyOf(int node, int log_epoch,
                     std::vector<std::pair<int, int>> table,
                     const std::string& verdicts) {
  naive::Reply reply;
  reply.node = node;
  reply.log_epoch = log_epoch;
  reply.table = std::move(table);
  int lsn = 1;
  for (const char verdict : verdicts) {
    const int owner = verdict == 'h' ? naive::OwnerOf(reply.table, lsn) : 0;
    reply.cells.push_back({verdict, owner, 0});
    ++lsn;
  }
  return reply;
}

quorum::QuorumSizes SizesOf(int replicas, int write) {
  return {static_cast<uint32_t>(replicas), static_cast<uint32_t>(write),
          static_cast<uint32_t>(replicas - write + 1)};
}

naive::Choice ChoiceOf(const absl::StatusOr<recovery::Decision>& decision,
                       const std::vector<StateReport>& reports) {
  naive::Choice choice;
  if (!decision.ok()) {
    choice.outcome = 'e';
    return choice;
  }
  choice.outcome = decision->outcome == recovery::Outcome::kChosen ? 'c' : 'w';
  const auto nodes = [&reports](recovery::ReportSet set) {
    std::set<int> result;
    for (size_t i = 0; i < reports.size(); ++i) {
      if (recovery::Contains(set, i))
        result.insert(static_cast<int>(reports[i].node.value));
    }
    return result;
  };
  choice.head = static_cast<int>(decision->head.lsn.value);
  choice.end = static_cast<int>(decision->end.lsn.value) - 1;
  for (const recovery::KeptRun& run : decision->kept) {
    for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
      choice.holders.push_back(nodes(run.holders));
      choice.epochs.push_back(static_cast<int>(run.epoch.value));
    }
  }
  choice.nacks = nodes(decision->nacks);
  return choice;
}

std::string Describe(const std::vector<naive::Reply>& replies) {
  std::string text;
  for (const naive::Reply& reply : replies) {
    absl::StrAppend(&text, "[node ", reply.node, " log_epoch ", reply.log_epoch,
                    " head ", reply.head, " table");
    for (const auto& [epoch, start] : reply.table) {
      absl::StrAppend(&text, " ", epoch, "@", start);
    }
    absl::StrAppend(&text, reply.blank ? " blank" : "",
                    reply.suspect ? " suspect" : "",
                    reply.repairing ? " repairing" : "", ":");
    for (const naive::Cell& cell : reply.cells) {
      absl::StrAppend(&text, " ", std::string(1, cell.verdict));
      if (cell.verdict == 'h') absl::StrAppend(&text, cell.epoch);
      if (cell.variant != 0) absl::StrAppend(&text, "'");
    }
    absl::StrAppend(&text, "] ");
  }
  return text;
}

std::string Describe(const naive::Choice& choice) {
  std::string text = absl::StrCat(std::string(1, choice.outcome), " head ",
                                  choice.head, " end ", choice.end, " epochs");
  for (const int epoch : choice.epochs) absl::StrAppend(&text, " ", epoch);
  absl::StrAppend(&text, " nacks");
  for (const int node : choice.nacks) absl::StrAppend(&text, " ", node);
  return text;
}

}  // namespace alpheus::testing
