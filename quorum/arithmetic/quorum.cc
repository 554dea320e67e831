// SPDX-License-Identifier: Apache-2.0
#include "quorum/arithmetic/quorum.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/format/superline.h"

namespace alpheus::quorum {
namespace {

absl::Status CheckSize(const char* name, uint32_t size, uint32_t count) {
  if (size >= 1 && size <= count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " = ", size, " of N = ", count,
                   " replicas; it must be 1 to N. Change it or the members"));
}

bool QuorumsMeet(uint32_t n, uint32_t w, uint32_t r) { return r + w > n; }

// Returns the `rank`th highest LSN of the replicas in sync. Requires: there are
// that many.
uint64_t HighestOf(std::span<const ReplicaProgress> replicas, uint32_t rank) {
  // Insertion sort: N is small, and the order hardly changes between two calls.
  // The array is not initialized: only written entries are read.
  std::array<uint64_t, kMembersMax> descending;
  uint32_t count = 0;
  for (const ReplicaProgress& replica : replicas) {
    if (!replica.in_sync) continue;
    uint32_t place = count++;
    for (; place > 0 && descending[place - 1] < replica.persisted_lsn.value;
         --place) {
      descending[place] = descending[place - 1];
    }
    descending[place] = replica.persisted_lsn.value;
  }
  return descending[rank - 1];
}

// Requires: QU1 (quorum.h), for the parts that the arithmetic rests on.
void CheckReportCounts(const QuorumSizes& sizes, const ReportCounts& reports) {
  ALPHEUS_CHECK(sizes.write_quorum >= 1, "QU1 (quorum.h)");
  ALPHEUS_CHECK(sizes.write_quorum <= sizes.replica_count, "QU1 (quorum.h)");
  ALPHEUS_CHECK(
      reports.have + reports.nack + reports.unknown <= sizes.replica_count,
      "no replica reports twice (P-H17)");
}

}  // namespace

absl::StatusOr<QuorumSizes> MakeQuorumSizes(
    uint32_t replica_count, std::optional<uint32_t> write_quorum,
    std::optional<uint32_t> read_quorum) {
  const uint32_t n = replica_count;
  if (n < 1 || n > kMembersMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "N = ", n, " replicas; a log has 1 to ", kMembersMax, " of them"));
  }
  const uint32_t w = write_quorum.value_or(n / 2 + 1);
  if (absl::Status status = CheckSize("write_quorum W", w, n); !status.ok()) {
    return status;
  }
  const uint32_t r = read_quorum.value_or(n - w + 1);
  if (absl::Status status = CheckSize("read_quorum R", r, n); !status.ok()) {
    return status;
  }
  if (!QuorumsMeet(n, w, r)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "R + W = ", r, " + ", w, " with N = ", n,
        " replicas: an opening could miss all W that hold a durable record. R "
        "+ W must be above N: raise read_quorum to at least ",
        n - w + 1, ", or write_quorum"));
  }
  return QuorumSizes{n, w, r};
}

std::optional<Lsn> DurableLsn(std::span<const ReplicaProgress> replicas,
                              uint32_t write_quorum) {
  ALPHEUS_CHECK(write_quorum >= 1, "QU1 (quorum.h)");
  ALPHEUS_CHECK(replicas.size() <= kMembersMax, "N is at most kMembersMax");
  uint32_t count = 0;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const ReplicaProgress& replica : replicas) {
    if (!replica.in_sync) continue;
    ++count;
    least = std::min(least, replica.persisted_lsn.value);
  }
  if (count < write_quorum) return std::nullopt;
  // With one backup, or after a loss, no replica may lag. Each ack comes by
  // here.
  return Lsn(count == write_quorum ? least : HighestOf(replicas, write_quorum));
}

bool MayBeDurable(const QuorumSizes& sizes, const ReportCounts& reports) {
  CheckReportCounts(sizes, reports);
  return reports.nack < NackQuorum(sizes);
}

Fate FateOf(const QuorumSizes& sizes, const ReportCounts& reports) {
  CheckReportCounts(sizes, reports);
  if (reports.have > 0) return Fate::kKeep;
  return MayBeDurable(sizes, reports) ? Fate::kUndecided : Fate::kCut;
}

uint32_t OpeningQuorumSize(const QuorumSizes& sizes) {
  return std::max(sizes.read_quorum, sizes.write_quorum);
}

uint32_t ConfirmQuorumSize(uint32_t replica_count, uint32_t write_quorum) {
  ALPHEUS_CHECK(write_quorum >= 1, "QU1 (quorum.h)");
  ALPHEUS_CHECK(write_quorum <= replica_count, "QU1 (quorum.h)");
  const uint32_t least_opening =
      std::max(replica_count - write_quorum + 1, write_quorum);
  return replica_count - least_opening + 1;
}

}  // namespace alpheus::quorum
