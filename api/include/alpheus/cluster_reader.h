// SPDX-License-Identifier: Apache-2.0
// cluster_reader: reads a replicated log over the network, without taking part.
//
// Idea: every node lets its replicas be read. A cluster reader fetches an image
// of each replica that can be reached, and shows what is proven to be on W of
// them: that is durable, and stays. It promises nothing and disturbs nobody; a
// primary may write meanwhile, and what it writes later is not shown.
//
// What a reader may promise (the proofs stand in
// recovery/follow/durable_range.h):
//   CR1. Every record up to durable_lsn() is durable: W replicas have persisted
//        it, and every later opening recovers it. What is shown once, a later
//        reader that reaches those replicas shows again.
//   CR2. It is a lower bound. A record may be acknowledged that no replica in
//        reach proves: the primary alone knows for the moment, a primary's own
//        replica is not served while it runs, a node may be down.
//        durable_lsn_max() says how much more there may be; both are equal when
//        the log is idle or closed and all replicas answer. Opening the log
//        decides what becomes of the rest.
//   CR3. With fewer replicas than it takes to say anything it says less, never
//        more: durable_lsn() may be Lsn(0).
// A replica that says it has other N and W than the cluster file is an error of
// that replica: with too small a W too much would pass for durable.
//
// Thread safety: one thread per reader; any number of readers.
// References: protocol P-A1, P-A3.5, P-A4.4, P-A4.5, P-A7.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log_reader.h"
#include "log/base/ids.h"

namespace alpheus {

struct ClusterReaderOptions {
  std::string cluster_file;       // see tools/samples/cluster.toml
  std::string log_name = "main";  // as in ReplicationOptions
  uint64_t node = 0;              // only the replica of this node; 0: all
  // A node that sends nothing for so long is given up. An image may take
  // longer, as long as it comes.
  uint32_t timeout_ms = 5'000;
  // Only what the regions say of themselves: no records, and no verdicts.
  bool without_records = false;
};

// How a replica stands, as its node says, also of one that a primary of its
// machine has as its own.
struct ReplicaStanding {
  Epoch log_epoch;
  bool repairing = false;
  // A primary of that epoch is connected to it, or has it as its own, and
  // counts what it persists.
  bool in_session = false;
  bool is_own = false;        // the primary's own
  uint64_t primary_node = 0;  // whom it promised last; 0: nobody
  uint64_t configuration_id = 0;
  Lsn head_lsn;
  uint64_t head_offset = 0;  // monotone
  Lsn persisted_lsn;
  Lsn durable_lsn;
  // Monotone, behind its last record; nothing: its node has not looked since it
  // started, or serves it not.
  std::optional<uint64_t> end_offset;
  uint64_t ring_capacity = 0;  // bytes
  // In its table, with live records; of kEpochTableCapacity.
  uint64_t epoch_count = 0;
  // LSNs, [first, end), that its node knows to be damaged there, from a scrub
  // or an opening; only the first ones.
  std::vector<std::pair<Lsn, Lsn>> damaged = {};
};

// One member of the configuration.
struct ReplicaReading {
  uint64_t node = 0;
  std::string address;
  // OK, or why this replica could not be read: Unavailable (nobody there),
  // NotFound (the node has none), DataLoss (it is damaged), FailedPrecondition
  // (another node or cluster, or other N and W, than the cluster file says),
  // Unauthenticated (it has another cluster key, or asks for one), Aborted
  // (epochs were opened too fast).
  absl::Status status;
  std::optional<RegionInfo> info;  // of a region that can be read
  // Of all its records; nothing if without_records.
  std::optional<VerifyReport> report;
  // If without_records, of a node that answered.
  std::optional<ReplicaStanding> standing = {};
  // How many peers the node refused since it started, of all its logs, by
  // reason ("wrong key"); only reasons that it had.
  std::vector<std::pair<std::string, uint64_t>> refusals = {};
  // What the node's scrubbing of this replica came to since the node started,
  // or the replica was made, by name ("damaged"); only what is not 0.
  std::vector<std::pair<std::string, uint64_t>> scrubbed = {};
  // Somebody is there, whatever was said; false: the node is down, or the way
  // to it is.
  bool answered = false;
};

class ClusterReader {
 public:
  // Reads all images, in memory: who visits the records may take any time.
  // Succeeds if any replica answered, or without_records in any case; the
  // others are reported by replicas().
  // Errors: as LoadClusterFile and CheckLogName; NotFound (no such node);
  // Unavailable (nobody answered); what each says if all say the same.
  static absl::StatusOr<std::unique_ptr<ClusterReader>> Open(
      const ClusterReaderOptions& options);
  ~ClusterReader();

  const std::vector<ReplicaReading>& replicas() const;
  // Id, N, W and R of the cluster file.
  uint64_t configuration_id() const;
  uint32_t replica_count() const;
  uint32_t write_quorum() const;
  uint32_t read_quorum() const;

  // OK, or FailedPrecondition: a node that answered has a newer configuration
  // than the cluster file. The members changed, and others may have the rest of
  // the log: what the file's members say may be all true and not the end.
  absl::Status outdated() const;

  // Asks the nodes once more how their replicas stand, and nothing else; not
  // those that were silent for timeout_ms.
  // Requires: without_records.
  std::vector<std::optional<ReplicaStanding>> AskStandings();

  // CR1, CR2. Without records, from what the regions say of themselves.
  Lsn durable_lsn() const;
  // Nothing behind it had been acknowledged when Open was called. Nothing: too
  // few replicas were reached to say so, or no records were read.
  std::optional<Lsn> durable_lsn_max() const;
  bool durable_is_lower_bound() const {
    return durable_lsn_max() != durable_lsn();
  }

  // Calls `visit` with each record up to durable_lsn(), cleaned and aborted
  // ones included, from a replica that holds them all. Requires: records were
  // read.
  // Errors: DataLoss (damage: after the last record before it); Unavailable
  // (no replica in reach has the last of them: after the others); that of the
  // first replica if none could be read; FailedPrecondition (outdated(): before
  // the first record); whatever `visit` returns.
  absl::Status ForEachDurable(
      const std::function<absl::Status(const ReaderRecord&)>& visit);

  // The image of the index-th replica. nullptr if it could not be read. What
  // it shows is what that replica holds, and may be more or less than the log:
  // records that are completed there are on their way, or were given up.
  LogReader* reader(size_t index);

 private:
  class Impl;
  explicit ClusterReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_
