// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/oracles/recovery_oracle.h"

#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace alpheus::demo {
namespace {

constexpr size_t kViolationsShownMax = 10;

class Judge {
 public:
  Judge(const Feed& feed, const HistoryFacts& facts)
      : feed_(feed), facts_(facts) {}

  Judgement Run() {
    PlaceRecovered();
    CheckSurvivors();
    CheckAcknowledgements();
    CheckUnbroken();
    for (const WriterFacts& writer : facts_.writers) {
      CheckThreads(writer);
      CheckFloor(writer);
    }
    CheckEpochs();
    return std::move(judgement_);
  }

 private:
  template <class... Parts>
  void Violate(uint64_t* count, const Parts&... parts) {
    ++*count;
    if (judgement_.violations.size() < kViolationsShownMax) {
      judgement_.violations.push_back(absl::StrCat(parts...));
    }
  }

  static bool IsOf(const WriterFacts& writer, uint64_t number) {
    return number >= writer.first_number &&
           number - writer.first_number < writer.fed_count;
  }

  const WriterFacts* WriterOf(uint64_t number) const {
    const auto found = std::find_if(
        facts_.writers.begin(), facts_.writers.end(),
        [&](const WriterFacts& writer) { return IsOf(writer, number); });
    return found == facts_.writers.end() ? nullptr : &*found;
  }

  bool IsOfThisRound(uint64_t number) const {
    return WriterOf(number) != nullptr;
  }

  // The thread of the record with that index among those of the writer.
  static uint64_t ThreadOf(const WriterFacts& writer, uint64_t index) {
    return (writer.first_index + index) % writer.threads;
  }

  // RO3, and the "exactly once" of RO1 and RO2.
  void PlaceRecovered() {
    for (const PlacedRecord& survivor : facts_.survivors) {
      was_survivor_[survivor.number] = true;
    }
    for (const RecoveredRecord& record : facts_.recovered) {
      const auto number = Feed::NumberOf(record.payload);
      const bool known =
          number && (IsOfThisRound(*number) || was_survivor_.count(*number));
      if (!known || feed_.Record(*number) != record.payload) {
        Violate(&judgement_.invented_count, "RO3: LSN ", record.lsn,
                " holds what was never fed: '",
                std::string(record.payload.substr(0, 60)), "'");
        continue;
      }
      if (!lsn_of_.emplace(*number, record.lsn).second) {
        Violate(&judgement_.duplicated_count, "RO1: record ", *number,
                " is there twice, at LSN ", lsn_of_[*number], " and ",
                record.lsn);
        continue;
      }
      judgement_.survivors.push_back({record.lsn, *number});
      judgement_.recovered_count += IsOfThisRound(*number) ? 1 : 0;
    }
  }

  // RO2.
  void CheckSurvivors() {
    for (size_t i = 0; i < facts_.survivors.size(); ++i) {
      const PlacedRecord& survivor = facts_.survivors[i];
      if (i < judgement_.survivors.size() &&
          judgement_.survivors[i] == survivor) {
        continue;
      }
      Misses(survivor, "RO2: recovered once");
    }
  }

  // RO1.
  void CheckAcknowledgements() {
    uint64_t count = 0;
    for (const WriterFacts& writer : facts_.writers) {
      for (const Acknowledgement& ack : writer.acknowledgements) {
        const auto found = lsn_of_.find(ack.record.number);
        if (found == lsn_of_.end() || found->second != ack.record.lsn) {
          Misses(ack.record, "RO1: acknowledged");
        }
      }
      count += writer.acknowledgements.size();
    }
    judgement_.unacknowledged_count =
        judgement_.recovered_count -
        std::min<uint64_t>(judgement_.recovered_count, count);
  }

  void Misses(const PlacedRecord& record, const char* claim) {
    const auto found = lsn_of_.find(record.number);
    if (found == lsn_of_.end()) {
      Violate(&judgement_.lost_count, claim, ", then lost: record ",
              record.number, " of LSN ", record.lsn);
    } else {
      Violate(&judgement_.out_of_order_count, claim, " as LSN ", record.lsn,
              ", then moved: record ", record.number, " has LSN ",
              found->second);
    }
  }

  // RO4.
  void CheckUnbroken() {
    for (size_t i = 1; i < facts_.recovered.size(); ++i) {
      const uint64_t before = facts_.recovered[i - 1].lsn;
      const uint64_t lsn = facts_.recovered[i].lsn;
      if (lsn != before + 1) {
        Violate(&judgement_.out_of_order_count, "RO4: LSN ", lsn,
                " comes after LSN ", before);
      }
    }
  }

  // RO5.
  void CheckThreads(const WriterFacts& writer) {
    std::vector<uint64_t> acknowledged(writer.threads, 0);
    for (const Acknowledgement& ack : writer.acknowledgements) {
      const uint64_t index = ack.record.number - writer.first_number;
      const uint64_t thread = ThreadOf(writer, index);
      if (ack.thread != thread ||
          index / writer.threads != acknowledged[thread]) {
        Violate(&judgement_.out_of_order_count, "RO5: thread ", ack.thread,
                " acknowledged record ", ack.record.number, " as its ",
                acknowledged[thread], "th");
      }
      ++acknowledged[thread];
    }
    const std::vector<uint64_t> recovered = CountInOrder(writer);
    if (facts_.goes_on) return;
    for (uint64_t thread = 0; thread < writer.threads; ++thread) {
      if (recovered[thread] > acknowledged[thread] + 1) {
        Violate(&judgement_.out_of_order_count, "RO5: thread ", thread, " has ",
                recovered[thread], " records there, but acknowledged only ",
                acknowledged[thread]);
      }
    }
  }

  // The records of each thread, which must come in the thread's order.
  std::vector<uint64_t> CountInOrder(const WriterFacts& writer) {
    std::vector<uint64_t> next(writer.threads, 0);
    for (const PlacedRecord& record : judgement_.survivors) {
      if (!IsOf(writer, record.number)) continue;
      const uint64_t index = record.number - writer.first_number;
      const uint64_t thread = ThreadOf(writer, index);
      if (index / writer.threads != next[thread]) {
        Violate(&judgement_.out_of_order_count, "RO5: thread ", thread,
                ": record ", record.number, " stands where its ", next[thread],
                "th must");
      }
      ++next[thread];
    }
    return next;
  }

  // RO6.
  void CheckFloor(const WriterFacts& writer) {
    for (const PlacedRecord& record : judgement_.survivors) {
      if (!IsOf(writer, record.number) || record.lsn > writer.lsn_floor) {
        continue;
      }
      Violate(&judgement_.out_of_order_count, "RO6: record ", record.number,
              " has LSN ", record.lsn, ", but LSN ", writer.lsn_floor,
              " was known before its writer started");
    }
  }

  // RO7. Writers of earlier rounds are not known any more.
  void CheckEpochs() {
    uint64_t last = 0;
    std::unordered_map<uint64_t, const WriterFacts*> primaries;
    for (const RecoveredRecord& record : facts_.recovered) {
      if (record.epoch == 0) continue;
      if (record.epoch < last) {
        Violate(&judgement_.out_of_order_count, "RO7: LSN ", record.lsn,
                " is of epoch ", record.epoch, ", after one of epoch ", last);
      }
      last = std::max(last, record.epoch);
      const auto number = Feed::NumberOf(record.payload);
      const WriterFacts* const writer = number ? WriterOf(*number) : nullptr;
      if (writer == nullptr) continue;
      const auto [found, is_new] = primaries.emplace(record.epoch, writer);
      if (found->second == writer) continue;
      Violate(&judgement_.out_of_order_count, "RO7: epoch ", record.epoch,
              " has records of two primaries: record ", *number, " at LSN ",
              record.lsn, " is not of the one that was fed record ",
              found->second->first_number);
    }
  }

  const Feed& feed_;
  const HistoryFacts& facts_;
  Judgement judgement_;
  std::unordered_map<uint64_t, bool> was_survivor_;
  std::unordered_map<uint64_t, uint64_t> lsn_of_;  // by number
};

}  // namespace

Judgement JudgeHistory(const Feed& feed, const HistoryFacts& facts) {
  return Judge(feed, facts).Run();
}

Judgement JudgeRecovery(const Feed& feed, const KillFacts& facts) {
  HistoryFacts history;
  history.survivors = facts.survivors;
  history.writers = {
      {.threads = facts.threads,
       .first_number = facts.first_number,
       .fed_count = facts.fed_count,
       .lsn_floor = facts.survivors.empty() ? 0 : facts.survivors.back().lsn,
       .acknowledgements = facts.acknowledgements}};
  history.recovered = facts.recovered;
  return JudgeHistory(feed, history);
}

}  // namespace alpheus::demo
