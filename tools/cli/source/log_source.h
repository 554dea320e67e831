// SPDX-License-Identifier: Apache-2.0
// log_source: the log of a command: a region file, or a log of a cluster.
#ifndef ALPHEUS_TOOLS_CLI_SOURCE_LOG_SOURCE_H_
#define ALPHEUS_TOOLS_CLI_SOURCE_LOG_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/cluster_reader.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {

// The longest time-out that an option may give.
inline constexpr uint32_t kTimeoutMillisMax = 3'600'000;

struct LogSource {
  std::string file;     // empty: use the cluster
  std::string cluster;  // file that names its members
  std::string log = "main";
  uint64_t node = 0;            // 0: not given
  uint32_t timeout_ms = 5'000;  // as ClusterReaderOptions

  bool is_cluster() const { return !cluster.empty(); }
};

// Adds --cluster and --log.
void AddClusterOptions(CLI::App* command, LogSource* source);

// Adds --node, with --cluster.
Option AddNodeOption(CLI::App* command, LogSource* source, const char* meaning);

// Adds --timeout-ms, with --cluster: time until a silent node is given up.
void AddTimeoutOption(CLI::App* command, uint32_t* timeout_ms);

// Adds either --file, or --cluster with --log and --node.
void AddReadSourceOptions(
    CLI::App* command, LogSource* source,
    const char* node_meaning =
        "Only the replica of this node of the cluster; it may hold more "
        "records than are durable, or fewer");

// Adds either --file, or --cluster with --log.
void AddFormatSourceOptions(CLI::App* command, LogSource* source);

// Adds --file for a local log; or --cluster with --log and --node, and optional
// --file for this node's own replica.
void AddWriteSourceOptions(CLI::App* command, LogSource* source);

// Returns the options that name the log, as typed: "--file FILE", or "--cluster
// FILE --log NAME".
std::string AsOptions(const LogSource& source);

// Returns the text with the command line's own names for FILE and NAME. Lower
// layers don't know them, and printed commands can be typed.
std::string Spelled(const LogSource& source, const std::string& text);

// Spells the result of a command on a cluster's log. If it says that members
// have no replica, they are asked: NotFound if none has one.
absl::Status Explain(const LogSource& source, const absl::Status& status);

// Returns a replica's error without node and address, which messages already
// begin with.
std::string WhyOf(const ReplicaReading& replica);

// Reports on standard error the replicas that could not be read, except as far
// as the command's own error does.
void ReportUnread(const LogSource& source,
                  const std::vector<ReplicaReading>& replicas,
                  const absl::Status& error);

// Reads the replicas of a cluster's log; reports on standard error if more may
// be durable than can be proven. The caller reports unreadable replicas
// (ReportUnread).
// Errors: as ClusterReader::Open.
absl::StatusOr<std::unique_ptr<ClusterReader>> OpenClusterReader(
    const LogSource& source);

// Returns the worst error, with its node: damage; else a mismatch with the
// cluster file; else a replica that could not be reached; else OK.
absl::Status WorstOf(const std::vector<ReplicaReading>& replicas);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_SOURCE_LOG_SOURCE_H_
