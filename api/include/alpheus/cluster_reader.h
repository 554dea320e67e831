// SPDX-License-Identifier: Apache-2.0
// cluster_reader: reads a replicated log over the network, without taking part.
//
// Idea: every node lets its replicas be read. A cluster reader fetches an image
// of each replica that can be reached, and shows what W of them hold: that is
// durable, and stays. It promises nothing and disturbs nobody; a primary may
// write meanwhile, and what it writes later is not shown.
//
// Thread safety: one thread per reader; any number of readers.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
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
  uint32_t timeout_ms = 5'000;    // for all nodes together
  // Only what the regions say of themselves: no records, and no verdicts.
  bool without_records = false;
};

// One member of the configuration.
struct ReplicaReading {
  uint64_t node = 0;
  std::string address;
  // OK, or why this replica could not be read: Unavailable (nobody there),
  // NotFound (the node has none), DataLoss (it is damaged).
  absl::Status status;
  std::optional<RegionInfo> info;  // of a region that can be read
  // Of all its records; nothing if without_records.
  std::optional<VerifyReport> report;
};

class ClusterReader {
 public:
  // Reads all images, in memory. Succeeds if any replica answered; the others
  // are reported by replicas().
  // Errors: as LoadClusterFile and CheckLogName; NotFound (no such node);
  // Unavailable (nobody answered).
  static absl::StatusOr<std::unique_ptr<ClusterReader>> Open(
      const ClusterReaderOptions& options);
  ~ClusterReader();

  const std::vector<ReplicaReading>& replicas() const;
  // W of the cluster file.
  uint32_t write_quorum() const;

  // Up to here W replicas hold all records of the newest epoch that was seen,
  // or one of them proves that it was persisted there. Requires: records were
  // read.
  Lsn durable_lsn() const;

  // Calls `visit` with each record up to durable_lsn(), cleaned and aborted
  // ones included, from a replica that holds them all.
  // Errors: DataLoss (damage: after the last record before it); that of the
  // first replica if none could be read; whatever `visit` returns.
  absl::Status ForEachDurable(
      const std::function<absl::Status(const ReaderRecord&)>& visit);

  // The image of the index-th replica. nullptr if it could not be read.
  LogReader* reader(size_t index);

 private:
  class Impl;
  explicit ClusterReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_CLUSTER_READER_H_
