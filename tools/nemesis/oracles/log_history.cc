// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/oracles/log_history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/format/record.h"

namespace alpheus::demo {

void LogHistory::Clear() {
  survivors_.clear();
  judgement_ = Judgement();
}

uint64_t LogHistory::DrawFirstNumber() {
  const uint64_t first = next_number_;
  next_number_ += kNumbersPerWriter;
  return first;
}

uint64_t LogHistory::LsnFloor(const std::vector<WriterFacts>& writers) const {
  uint64_t floor = survivors_.empty() ? 0 : survivors_.back().lsn;
  for (const WriterFacts& writer : writers) {
    for (const Acknowledgement& ack : writer.acknowledgements) {
      floor = std::max(floor, ack.record.lsn);
    }
  }
  return floor;
}

absl::Status LogHistory::Check(const std::vector<WriterFacts>& writers,
                               std::vector<RecoveredRecord> records,
                               bool is_final) {
  HistoryFacts facts;
  facts.survivors = survivors_;
  facts.writers = writers;
  facts.goes_on = !is_final;
  facts.recovered = std::move(records);
  Judgement judgement = JudgeHistory(feed_, facts);
  if (!judgement.holds()) {
    return absl::DataLossError(absl::StrCat(
        "lost ", judgement.lost_count, ", duplicated ",
        judgement.duplicated_count, ", invented ", judgement.invented_count,
        ", out of order ", judgement.out_of_order_count, ", of ",
        facts.recovered.size(), " records read:\n",
        absl::StrJoin(judgement.violations, "\n")));
  }
  survivors_ = judgement.survivors;
  if (is_final) judgement_ = std::move(judgement);
  return absl::OkStatus();
}

uint64_t LogHistory::ring_bytes() const {
  uint64_t bytes = 0;
  for (const PlacedRecord& record : survivors_) {
    bytes += RecordBytes(feed_.Record(record.number).size());
  }
  return bytes;
}

}  // namespace alpheus::demo
