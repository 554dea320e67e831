// SPDX-License-Identifier: Apache-2.0
// log_source: which log a command is about: a region file, or a log of a
// cluster.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_LOG_SOURCE_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_LOG_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/cluster_reader.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {

struct LogSource {
  std::string file;     // empty: of the cluster
  std::string cluster;  // file that names its members
  std::string log = "main";
  uint64_t node = 0;  // 0: not given

  bool is_cluster() const { return !cluster.empty(); }
};

// --cluster and --log.
void AddClusterOptions(CLI::App* command, LogSource* source);

// --node, with --cluster.
Option AddNodeOption(CLI::App* command, LogSource* source, const char* meaning);

// Either --file, or --cluster with --log and --node.
void AddReadSourceOptions(
    CLI::App* command, LogSource* source,
    const char* node_meaning =
        "Only the replica of this node of the cluster: what it holds, which "
        "may be more than is durable, or less");

// Either --file, or --cluster with --log.
void AddFormatSourceOptions(CLI::App* command, LogSource* source);

// --file for a log of its own; or --cluster with --log and --node, and perhaps
// --file for this node's own replica.
void AddWriteSourceOptions(CLI::App* command, LogSource* source);

// The options that name the log, as typed: "--file FILE", or "--cluster FILE
// --log NAME".
std::string AsOptions(const LogSource& source);

// The text with the command line's own names where it has FILE and NAME: parts
// below don't know them, and what is printed can be typed.
std::string Spelled(const LogSource& source, const std::string& text);

// As Spelled, of what a command on a cluster's log came to. If it says that
// members have no replica, they are asked: NotFound if none has one.
absl::Status Told(const LogSource& source, const absl::Status& status);

// What is wrong with a replica, without node and address, which messages begin
// with of themselves.
std::string WhyOf(const ReplicaReading& replica);

// Tells on standard error which replicas could not be read, but for what the
// command's own error says of them.
void TellUnread(const LogSource& source,
                const std::vector<ReplicaReading>& replicas,
                const absl::Status& error);

// Reads the replicas of a cluster's log; tells on standard error whether more
// may be durable than can be proven. Whoever calls it tells what could not be
// read (TellUnread).
// Errors: as ClusterReader::Open.
absl::StatusOr<std::unique_ptr<ClusterReader>> OpenClusterReader(
    const LogSource& source);

// Damage of any replica, else that the cluster file is wrong of one, else that
// one could not be reached, else OK. Names the node.
absl::Status WorstOf(const std::vector<ReplicaReading>& replicas);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_LOG_SOURCE_H_
