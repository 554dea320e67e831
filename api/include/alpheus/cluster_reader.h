// SPDX-License-Identifier: Apache-2.0
// cluster_reader: reads a replicated log over the network, without taking part.
//
// Idea: every node lets its replicas be read. A cluster reader fetches an image
// of each reachable replica and shows the records that are proven to be on W of
// them. Such records are durable and stay so. The reader joins no quorum and
// delays nobody. A primary may write meanwhile; its later records are not
// shown.
//
// Guarantees of a reader (proofs: recovery/follow/durable_range.h):
//   CR1. Every record up to durable_lsn() is durable: W replicas have persisted
//        it, and every later opening recovers it. A later reader that reaches
//        those replicas shows it again.
//   CR2. durable_lsn() is a lower bound, durable_lsn_max() an upper one. A
//        record may be acknowledged although no reachable replica proves it.
//        The proof may be with the primary, in its own replica (which is not
//        served while it runs), or on a node that is down. Both bounds are
//        equal when the log is idle or closed and all replicas answer. Opening
//        the log decides the fate of the records in between.
//        Example: N = 3, W = 2, node 1 is down, node 2 proves records 1 to 9,
//        node 3 records 1 to 6. durable_lsn() is 6. Node 1 may have record 9
//        too, so durable_lsn_max() is 9.
//   CR3. With too few replicas the reader shows less, never more: durable_lsn()
//        may be Lsn(0).
// A replica whose N or W differ from the cluster file's is reported as an error
// of that replica: with too small a W the reader would show records as durable
// that are not.
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
  // Time without a byte, in milliseconds, after which a node is given up. An
  // image may take longer, as long as it arrives.
  uint32_t timeout_ms = 5'000;
  // Reads only the regions' descriptions: no records, and no verdicts.
  bool without_records = false;
};

// State of a replica as its node reports it, also of a replica that a primary
// on that machine has as its own.
struct ReplicaStanding {
  Epoch log_epoch;
  bool repairing = false;
  // A primary of that epoch is connected to it, or has it as its own, and
  // counts its acks.
  bool in_session = false;
  bool is_own = false;        // the primary's own
  uint64_t primary_node = 0;  // node of its promise owner; 0: none
  uint64_t configuration_id = 0;
  Lsn head_lsn;
  uint64_t head_offset = 0;  // monotone
  Lsn persisted_lsn;
  Lsn durable_lsn;
  // End of its last record, monotone. Empty: its node has not scanned it since
  // the node started, or does not serve it.
  std::optional<uint64_t> end_offset;
  uint64_t ring_capacity = 0;  // bytes
  // Epochs in its table that own live records; at most kEpochTableCapacity.
  uint64_t epoch_count = 0;
  // Ranges [first, end) of LSNs that a scrub or an opening found damaged there;
  // only the first ranges.
  std::vector<std::pair<Lsn, Lsn>> damaged = {};
  // When the certificate that its node shows to others expires, in seconds
  // since 1970. Empty: the cluster does not encrypt.
  std::optional<int64_t> certificate_end_s = {};
};

// Reading of one member of the configuration.
struct ReplicaReading {
  uint64_t node = 0;
  std::string address;
  // OK, or the reason why this replica could not be read: Unavailable (no
  // connection), NotFound (the node has none), DataLoss (it is damaged),
  // FailedPrecondition (node, cluster, N or W differ from the cluster file),
  // Unauthenticated (another cluster key, or one is missing), DeadlineExceeded
  // (a new epoch, or a new replica, overtook each of its readings).
  absl::Status status;
  std::optional<RegionInfo> info;  // description; empty: not readable
  // Result of reading all its records; empty if without_records.
  std::optional<VerifyReport> report;
  // Its state; only if without_records, and only if the node answered.
  std::optional<ReplicaStanding> standing = {};
  // Number of peers that the node has rejected since it started, for all its
  // logs, by reason ("wrong key"); only reasons that occurred.
  std::vector<std::pair<std::string, uint64_t>> rejects = {};
  // Counts of scrubbing this replica, by name ("damaged"), since the node
  // started or the replica was made; only those above 0.
  std::vector<std::pair<std::string, uint64_t>> scrubbed = {};
  // True if the node answered, even with an error. False if the node, or the
  // way to it, is down.
  bool answered = false;
};

class ClusterReader {
 public:
  // Reads all images into memory, so that visiting the records may take any
  // time. Succeeds if any replica answered, and always if without_records;
  // replicas() reports the others.
  // Errors: those of the cluster file (ReplicationOptions::cluster_file);
  // NotFound (no such node); Unavailable (no node answered); the common error
  // if all nodes return the same one.
  static absl::StatusOr<std::unique_ptr<ClusterReader>> Open(
      const ClusterReaderOptions& options);
  ~ClusterReader();

  const std::vector<ReplicaReading>& replicas() const;
  // Return the id, N, W and R of the cluster file.
  uint64_t configuration_id() const;
  uint32_t replica_count() const;
  uint32_t write_quorum() const;
  uint32_t read_quorum() const;

  // Returns OK, or FailedPrecondition: a node that answered has a newer
  // configuration than the cluster file. Then other members may have the rest
  // of the log, and the records of the listed members may not be the end of it.
  absl::Status outdated() const;

  // Asks the nodes again for the states of their replicas only. Skips nodes
  // that were silent for timeout_ms.
  // Requires: without_records.
  std::vector<std::optional<ReplicaStanding>> AskStandings();

  // Returns the highest LSN that is proven durable (CR1, CR2). Without records
  // it is computed from the regions' descriptions.
  Lsn durable_lsn() const;
  // Returns an LSN after which nothing had been acknowledged when Open was
  // called. Empty: too few replicas were reached, or no records were read.
  std::optional<Lsn> durable_lsn_max() const;
  bool durable_is_lower_bound() const {
    return durable_lsn_max() != durable_lsn();
  }

  // Calls `visit` with each record up to durable_lsn(), cleaned and aborted
  // ones included, from a replica that holds them all. Requires: records were
  // read.
  // Errors: DataLoss (a record is damaged: all before it were visited);
  // Unavailable (no reachable replica has the last records: all others were
  // visited); the first replica's error if none could be read;
  // FailedPrecondition (outdated(): before the first record); any error that
  // `visit` returns.
  absl::Status ForEachDurable(
      const std::function<absl::Status(const ReaderRecord&)>& visit);

  // Returns the image of the index-th replica; nullptr if it could not be read.
  // It shows what that replica holds, which may be more or less than the log:
  // records that are completed there may still be in flight, or an opening may
  // have cut them.
  LogReader* reader(size_t index);

 private:
  class Impl;
  explicit ClusterReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_
