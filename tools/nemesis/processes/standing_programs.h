// SPDX-License-Identifier: Apache-2.0
// standing_programs: programs that stand for primary of one log, each at a node
// of its own, which are fed and listened to side by side.
//
// Idea: a program gets new records only while acknowledgements are waited for,
// or a command runs beside it. So it never fills the ring, however long a fault
// takes.
//
// Invariants:
//   STP1. Every wait has a deadline.
//   STP2. A program that was started stays until Clear, so that its
//         acknowledgements and its output are not lost.
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_STANDING_PROGRAMS_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_STANDING_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/writers/cluster_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

class StandingPrograms {
 public:
  // Called when a program has ended by itself; its error ends the wait.
  using OnEnd = std::function<absl::Status(const ClusterWriter& ended)>;

  // `cluster` and `feed` must outlive it.
  StandingPrograms(Cluster* cluster, const Feed* feed, OnEnd on_end)
      : cluster_(*cluster), feed_(*feed), on_end_(std::move(on_end)) {}

  // Starts a program, with plan.stands set here. The object owns it. Errors:
  // Unavailable.
  absl::StatusOr<ClusterWriter*> Start(ClusterWriterPlan plan);
  // Kills all. Errors: as ClusterWriter::Kill.
  absl::Status KillAll();
  // Drops all. Requires: each has ended.
  void Clear() { programs_.clear(); }

  // Returns all in the order of their start, also those that have ended.
  const std::vector<std::unique_ptr<ClusterWriter>>& all() const {
    return programs_;
  }
  // Returns the one that runs at that node, or null.
  ClusterWriter* At(int node) const;

  // Takes the output of all, for a moment. Errors: as ClusterWriter::RunUntil;
  // of OnEnd.
  absl::Status Listen();
  absl::Status ListenFor(int64_t nanos);
  // Listens until is_so(). Errors: DeadlineExceeded (with `what`); as Listen.
  absl::Status Await(const std::string& what, absl::FunctionRef<bool()> is_so);
  // Listens until all that run have said that they stand. Errors: as Await.
  absl::Status AwaitStanding();
  // Feeds all until one other than `but` has acknowledged so many records more
  // than now, and returns it. Errors: as Await.
  absl::StatusOr<ClusterWriter*> AwaitPrimary(const ClusterWriter* but,
                                              uint64_t ack_count);
  // Feeds all while a command runs, to its end. Errors: Unavailable (it can't
  // be started); as Await.
  absl::StatusOr<ProgramResult> RunBesideLoad(const Program& command);

  std::vector<WriterFacts> Terms() const;
  uint64_t AckCount() const;
  // Returns how often one of them said that it is primary.
  size_t EpochCount() const;
  // Returns all that they said, for the message of a failure.
  std::string Said() const;

 private:
  Cluster& cluster_;
  const Feed& feed_;
  const OnEnd on_end_;
  std::vector<std::unique_ptr<ClusterWriter>> programs_;
  bool is_fed_ = false;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_STANDING_PROGRAMS_H_
