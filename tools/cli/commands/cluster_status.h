// SPDX-License-Identifier: Apache-2.0
// cluster_status: what the nodes of a cluster say about one log, put together.
//
// Idea: a node knows how its own replica stands, and that a primary is
// connected to it. Who is primary, who is in sync, how full the ring is and how
// long it will last follow from all of them.
//
// Invariants:
//   CST1. In sync is a replica of the newest epoch that is not repairing and,
//         while a primary of that epoch is there, in a session with it, or its
//         own. A log that nobody writes has nobody in session: then all of the
//         newest epoch are.
//   CST2. What is used is from the least head to the furthest end that is
//         known: never too little.
// Thread safety: pure, but for the questions of TakeStatus.
// References: protocol P-A3.3, P-A6, P-A7; alpheus/cluster_reader.h.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_CLUSTER_STATUS_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_CLUSTER_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/cluster_reader.h"
#include "log/base/ids.h"
#include "tools/cli/commands/log_source.h"
#include "tools/cli/io/json_output.h"

namespace alpheus::cli {

// Of the ring of each replica; all are as large.
struct RingFill {
  uint64_t capacity = 0;  // bytes
  uint64_t used = 0;
  // By how much more it gets each second now; nothing: it does not, or it was
  // not looked at.
  std::optional<double> bytes_per_second;

  uint64_t free() const { return capacity - used; }
  uint64_t percent() const { return capacity == 0 ? 0 : used * 100 / capacity; }
  // Nothing: never, as it goes now.
  std::optional<double> SecondsUntilFull() const;
};

struct ClusterStatus {
  std::string log;
  std::string cluster_file;
  uint64_t configuration_id = 0;  // of the cluster file
  // The newest one that a replica has; 0: none could be asked.
  uint64_t log_configuration_id = 0;
  uint32_t replica_count = 0;  // N
  uint32_t write_quorum = 0;   // W
  uint32_t read_quorum = 0;    // R
  Lsn durable_lsn;             // at least
  bool durable_known = false;  // of enough replicas to say anything
  std::vector<ReplicaReading> replicas;

  Epoch newest;                  // log epoch
  uint64_t primary = 0;          // node; 0: none that a node in reach knows of
  std::vector<bool> in_sync;     // by replica
  uint32_t reached = 0;          // their replicas' state is known
  std::optional<RingFill> ring;  // nothing: nobody knows the end
  uint64_t epoch_count = 0;      // the largest table's
  std::vector<std::string> warnings;

  uint32_t InSync() const;
  bool IsKnown(size_t index) const;  // what the replica says of itself
  // The cluster file is newer than the log: its members are still to be changed
  // to what the file says.
  bool IsAheadOfLog() const {
    return log_configuration_id != 0 && configuration_id > log_configuration_id;
  }
  // The last one that a replica of the newest epoch is known to have, from what
  // it says without its records; LSN 0: none.
  Lsn LastKnown() const;
  // All nodes answer, and none has a replica.
  bool IsNowhere() const;
  // Of those that are served: may promise an epoch. Of these, those that know
  // nothing of the newest epoch's records, and are not below it (P-A4.3).
  uint32_t Usable() const;
  uint32_t Repairing() const;
  uint32_t Unknowing() const;
  std::string StateOf(size_t index) const;
  // LSNs that are known to be damaged on a replica, as "LSN 3, 7 to 9"; empty:
  // none.
  std::string DamageOf(size_t index) const;
  // The same of those that no served replica has whole.
  std::string LostLsns() const;
  // Why the log can't be opened as it is, in the order of Verdict; OK: it can.
  absl::Status CanBeOpened() const;

  std::string ToText() const;
  Json ToJson() const;  // one object
  // OK if W are in sync, none is damaged, or of another list of members, and
  // the log can be opened.
  absl::Status Verdict() const;
  // As Verdict, of fewer than W. Requires: !worst.ok().
  absl::Status TooFew(const absl::Status& worst) const;
  // As Verdict, and OK only if all are served by their nodes.
  absl::Status VerdictOfAll() const;

 private:
  // But for damage.
  std::string StandingStateOf(size_t index) const;
};

struct StatusOptions {
  // Until a log that is being written is looked at once more; 0: it is not.
  uint32_t sample_ms = 500;
  uint32_t timeout_ms = 5'000;  // as ClusterReaderOptions
};

// Asks the nodes. Where fewer than W can be read, what is durable is not in
// what they say of themselves: then it reads their records. Errors: as
// ClusterReader::Open.
absl::StatusOr<ClusterStatus> TakeStatus(const LogSource& source,
                                         const StatusOptions& options);

// One sentence without its end: what an opening that failed did to the primary
// that was there before it. Requires: before.primary != 0.
std::string WhatBecameOfPrimary(const ClusterStatus& before,
                                const ClusterStatus& after);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_CLUSTER_STATUS_H_
