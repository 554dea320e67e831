// SPDX-License-Identifier: Apache-2.0
#include "recovery/answer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "log/base/mutant.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus {
namespace {

constexpr Lsn kEndOfLsns(std::numeric_limits<uint64_t>::max());

HeldRecord Held(const RecordView& record) {
  return {record.epoch(), record.offset, record.header.header_crc(),
          static_cast<uint32_t>(record.bytes / kLineBytes)};
}

// A place whose header can't be read, but once began to be that of `lsn`.
bool LooksTorn(const ScanInput& input, const LogPosition& at) {
  const EpochEntry* const owner = input.table->Owner(at.lsn);
  if (owner == nullptr ||
      at.offset + kLineBytes > input.head.offset + input.ring.capacity()) {
    return false;
  }
  RecordHeader header;
  std::memcpy(&header, input.ring.At(at.offset), sizeof(header));
  return header.lsn == at.lsn.value && header.epoch == owner->epoch.value;
}

class Answering {
 public:
  Answering(const ScanInput& input, Answer* answer)
      : input_(input),
        limit_(input.head.offset + input.ring.capacity()),
        cursor_(input.ring, *input.table, input.head, limit_),
        answer_(answer) {}

  void Run() {
    for (;;) {
      WalkRecords();
      if (IsMutant(Mutant::kAnswerEndsAtAHole)) break;
      if (!SkipHole()) break;
    }
  }

 private:
  void Note(const RecordView& record) {
    answer_->proven_lsn =
        std::max(answer_->proven_lsn, Lsn(record.header.durable_lsn()));
  }

  // Up to the next header that can't be read; the last run then ends there. A
  // record with a bad payload has a length, so that the walk goes on behind it.
  void WalkRecords() {
    for (;;) {
      const Lsn lsn = cursor_.position().lsn;
      const RecordCursor::Step step = cursor_.Next();
      if (step == RecordCursor::Step::kBadHeader) {
        if (LooksTorn(input_, {lsn, cursor_.position().offset})) {
          AddVerdict(answer_, Verdict::kTorn);
        }
        return;
      }
      Note(cursor_.record());
      if (step == RecordCursor::Step::kRecord) {
        AddHeld(answer_, Held(cursor_.record()));
      } else {
        AddVerdict(answer_, Verdict::kTorn);
      }
    }
  }

  // Looks at every line from here to the limit for the next header that holds.
  // Its LSN says how many records the hole has; threads complete in any order.
  bool SkipHole() {
    const LogPosition from = cursor_.position();
    RecordView record;
    for (RingOffset at = from.offset; at + kLineBytes <= limit_;
         at = at + kLineBytes) {
      if (!cursor_.ReadAnyHeader(at, &record) || record.lsn() <= from.lsn) {
        continue;
      }
      const Lsn said =
          answer_->runs.empty() ? input_.head.lsn : answer_->runs.back().end;
      AddVerdict(answer_, Verdict::kAbsent, record.lsn() - said);
      LogPosition next;
      next.lsn = record.lsn();
      next.offset = at;
      cursor_.Resume(next);
      return true;
    }
    return false;
  }

  const ScanInput& input_;
  RingOffset limit_;
  RecordCursor cursor_;
  Answer* answer_;
};

// Torn and absent at or below the proven LSN are corrupt (A3).
void MarkCorrupt(Answer* answer) {
  if (IsMutant(Mutant::kAnswerProvesNothing)) {
    answer->proven_lsn = Lsn(0);
  }
  std::vector<VerdictRun> runs;
  runs.swap(answer->runs);
  const Lsn behind_proven = answer->proven_lsn + 1;
  const auto add = [answer](Lsn first, Lsn end, Verdict verdict) {
    if (first < end) AddVerdict(answer, verdict, end - first);
  };
  for (const VerdictRun& run : runs) {
    if (run.verdict == Verdict::kHave) {
      answer->runs.push_back(run);
      continue;
    }
    const Lsn middle = std::clamp(behind_proven, run.first, run.end);
    add(run.first, middle, Verdict::kCorrupt);
    add(middle, run.end, run.verdict);
  }
  const Lsn said =
      answer->runs.empty() ? answer->head.lsn : answer->runs.back().end;
  add(said, behind_proven, Verdict::kCorrupt);
}

}  // namespace

bool IsBlank(const Superline& superline) {
  const auto& members = superline.configuration.members;
  return std::find(members.begin(), members.end(),
                   Member{superline.node, superline.incarnation}) ==
         members.end();
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHave:
      return "have";
    case Verdict::kTorn:
      return "torn";
    case Verdict::kAbsent:
      return "absent";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

void AddVerdict(Answer* answer, Verdict verdict, uint64_t count) {
  if (count == 0) return;
  std::vector<VerdictRun>& runs = answer->runs;
  const Lsn first = runs.empty() ? answer->head.lsn : runs.back().end;
  if (!runs.empty() && runs.back().verdict == verdict) {
    runs.back().end = first + count;
    return;
  }
  runs.push_back({first, first + count, verdict, answer->held.size()});
}

void AddHeld(Answer* answer, const HeldRecord& record) {
  AddVerdict(answer, Verdict::kHave);
  answer->held.push_back(record);
}

VerdictReader::Seen VerdictReader::At(Lsn lsn) {
  const bool knows = answer_->knows() ||
                     (IsMutant(Mutant::kRepairingCounts) && answer_->repairing);
  if (!knows || lsn < answer_->head.lsn) {
    return {Verdict::kUnknown, nullptr, knows ? answer_->head.lsn : kEndOfLsns};
  }
  const std::vector<VerdictRun>& runs = answer_->runs;
  while (run_ < runs.size() && runs[run_].end <= lsn) ++run_;
  Seen seen{Verdict::kAbsent, nullptr, kEndOfLsns};
  if (run_ < runs.size()) {
    seen.verdict = runs[run_].verdict;
    seen.end = runs[run_].end;
  }
  if (seen.verdict == Verdict::kHave) {
    seen.record = &answer_->held[runs[run_].held + (lsn - runs[run_].first)];
  } else if (seen.verdict != Verdict::kUnknown && lsn <= answer_->proven_lsn) {
    seen.verdict = Verdict::kCorrupt;
    seen.end = std::min(seen.end, answer_->proven_lsn + 1);
  }
  return seen;
}

Answer AnswerOfRegion(std::span<std::byte> region, const RegionState& state,
                      const AnswerOptions& options) {
  const Superline& superline = state.superline;
  Answer answer;
  answer.node = superline.node;
  answer.incarnation = superline.incarnation;
  answer.configuration = superline.configuration;
  answer.ring_capacity = superline.ring_capacity;
  answer.log_epoch = superline.log_epoch;
  answer.promised_before = superline.promised_epoch;
  answer.table = state.table;
  answer.head = state.head();
  answer.proven_lsn = state.ProvenLsn();
  answer.blank = IsBlank(superline);
  answer.suspect = options.suspect;
  answer.repairing = superline.repairing;
  if (!answer.knows()) return answer;
  const ScanInput input = ScanInputOf(region, state);
  Answering(input, &answer).Run();
  MarkCorrupt(&answer);
  return answer;
}

}  // namespace alpheus
