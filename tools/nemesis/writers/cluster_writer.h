// SPDX-License-Identifier: Apache-2.0
// cluster_writer: a primary, `alpheus append --ack --cluster`, fed and listened
// to while faults hit it and its backups. One that stands (`--stand`) appends
// while it is primary.
//
// Idea: a program that loses the log says how many records it had taken.
// Records of these that it did not acknowledge are left out, or may be in the
// log. So its records between two losses are a term, and each term is judged
// like a writer of its own.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_WRITERS_CLUSTER_WRITER_H_
#define ALPHEUS_TOOLS_NEMESIS_WRITERS_CLUSTER_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/writers/fed_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

struct ClusterWriterPlan {
  int node = 1;
  // Its process serves the node's replica; else it has none.
  bool has_own_replica = false;
  std::string log = "main";
  uint64_t threads = 4;
  uint64_t first_number = 0;  // in the feed
  uint64_t lsn_floor = 0;     // the last LSN known before it starts
  FeedLimits limits = {};
  std::string cluster_file = {};          // empty: the cluster's own
  bool stands = false;                    // for primary
  std::vector<std::string> options = {};  // of `append`, behind all others
};

class ClusterWriter {
 public:
  // `cluster` and `feed` must outlive it. Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<ClusterWriter>> Start(
      Cluster* cluster, const Feed* feed, const ClusterWriterPlan& plan);

  // Runs until it has acknowledged `ack_count` records in all, has ended its
  // output, or time is over. Returns true if it has acknowledged them.
  // Errors: DataLoss (a node ended by itself; no acknowledgement).
  absl::StatusOr<bool> RunUntil(uint64_t ack_count, int64_t timeout_nanos);
  // Runs until it ends. Errors: as RunUntil; DeadlineExceeded.
  absl::StatusOr<ProcessEnd> RunToEnd(int64_t timeout_nanos);

  // Takes all acknowledgements given so far.
  // Errors: DataLoss (something that is none).
  absl::Status ListenUntilNow();

  // Ends its input: it appends what it was given, and ends.
  void EndInput() { writer_.EndInput(); }
  // Pauses the writer, see FedWriter::Pause.
  void Pause(bool is_paused) { writer_.Pause(is_paused); }
  void Pause() { process_.Pause(); }
  void Continue() { process_.Continue(); }
  // Kills it, and takes its last acknowledgements.
  // Errors: DataLoss (something that is none).
  absl::Status Kill();

  const ClusterWriterPlan& plan() const { return plan_; }
  uint64_t ack_count() const { return writer_.acknowledgements().size(); }
  bool has_ended_output() const { return has_ended_output_; }
  // Returns its end; nothing while it runs.
  const std::optional<ProcessEnd>& end() const { return end_; }
  const std::string& said() const { return writer_.said(); }
  // Returns false if its last report said that replicas are out of sync: it
  // reports at the start and at each change.
  bool has_all_in_sync() const;
  std::optional<uint64_t> durable_lsn() const { return writer_.durable_lsn(); }
  // Return the times of its start and of its first output.
  int64_t start_nanos() const { return start_nanos_; }
  std::optional<int64_t> first_ack_nanos() const { return first_ack_nanos_; }

  // Returns the epochs in which it said that it is primary.
  std::vector<uint64_t> Epochs() const;
  // Returns true once it has asked all nodes, and they know that it stands.
  bool HasSaidThatItStands() const;
  // Returns whether its last word is that it is primary, not that it is to hand
  // over, nor that it has lost the log.
  bool HasTheLog() const;
  // Returns how often it has said that it lost a log in which it was primary. A
  // log that it gave back in good order is not lost.
  size_t LossCount() const { return term_ends_.size(); }

  // Requires: it does not stand.
  WriterFacts Facts() const;
  // Returns the facts of each of its terms.
  std::vector<WriterFacts> Terms() const;
  // Returns "primary on node 2", for people.
  std::string ToString() const;

 private:
  ClusterWriter(Cluster* cluster, ChildProcess process, const Feed* feed,
                const ClusterWriterPlan& plan);
  absl::Status ListenAndFeed(int64_t timeout_nanos);
  absl::Status TakeWhatItSaid();

  Cluster& cluster_;
  const ClusterWriterPlan plan_;
  ChildProcess process_;
  FedWriter writer_;
  const int64_t start_nanos_;
  std::optional<int64_t> first_ack_nanos_;
  int64_t next_check_nanos_ = 0;
  bool has_ended_output_ = false;
  std::optional<ProcessEnd> end_;
  size_t seen_bytes_ = 0;            // of what it said, for losses
  std::vector<uint64_t> term_ends_;  // how many records were taken by then
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_WRITERS_CLUSTER_WRITER_H_
