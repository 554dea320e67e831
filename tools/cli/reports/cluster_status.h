// SPDX-License-Identifier: Apache-2.0
// cluster_status: combines the reports of a cluster's nodes about one log.
//
// Idea: a node knows the state of its own replica, and that a primary is
// connected to it. From all reports follow the primary, the replicas in sync,
// the fill of the ring, and the time until it is full.
//
// Invariants:
//   CST1. A replica is in sync if it has the newest epoch and is not repairing.
//         While a primary of that epoch runs, it must also be in a session with
//         it, or be its own. (Without a primary no replica is in a session.)
//   CST2. The used part of the ring is from the lowest head to the furthest
//         known end: never too little.
// Thread safety: pure, except for the questions of TakeStatus.
// References: protocol P-A3.3, P-A6, P-A7; alpheus/cluster_reader.h.
#ifndef ALPHEUS_TOOLS_CLI_REPORTS_CLUSTER_STATUS_H_
#define ALPHEUS_TOOLS_CLI_REPORTS_CLUSTER_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/cluster_reader.h"
#include "log/base/ids.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {

// Fill of the ring of each replica; all rings have the same size.
struct RingFill {
  uint64_t capacity = 0;  // bytes
  uint64_t used = 0;
  // Growth per second; empty: not growing, or not measured.
  std::optional<double> bytes_per_second;

  uint64_t free() const { return capacity - used; }
  uint64_t percent() const { return capacity == 0 ? 0 : used * 100 / capacity; }
  // Returns the time until the ring is full; nothing: never, at the present
  // rate.
  std::optional<double> SecondsUntilFull() const;
};

struct ClusterStatus {
  std::string log;
  std::string cluster_file;
  uint64_t configuration_id = 0;  // of the cluster file
  // Newest configuration of a replica; 0: unknown.
  uint64_t log_configuration_id = 0;
  uint32_t replica_count = 0;  // N
  uint32_t write_quorum = 0;   // W
  uint32_t read_quorum = 0;    // R
  Lsn durable_lsn;             // at least
  bool durable_known = false;  // enough replicas were read
  std::vector<ReplicaReading> replicas;

  Epoch newest;                  // log epoch
  uint64_t primary = 0;          // node; 0: none known
  std::vector<bool> in_sync;     // by replica
  uint32_t reached = 0;          // replicas of known state
  std::optional<RingFill> ring;  // nothing: end unknown
  uint64_t epoch_count = 0;      // the largest table's
  std::vector<std::string> warnings;

  uint32_t InSync() const;
  bool IsKnown(size_t index) const;  // its state is known
  // Returns whether the cluster file is newer than the log: the log's members
  // must still be changed to it.
  bool IsAheadOfLog() const {
    return log_configuration_id != 0 && configuration_id > log_configuration_id;
  }
  // Returns the last LSN that a replica of the newest epoch is known to have,
  // without reading its records; LSN 0: none.
  Lsn LastKnown() const;
  // Returns whether all nodes answer and none has a replica.
  bool IsNowhere() const;
  // Return the number of served replicas that may promise an epoch; and of
  // these, those that know nothing of the newest epoch's records and are not
  // below it (P-A4.3).
  uint32_t Usable() const;
  uint32_t Repairing() const;
  uint32_t Unknowing() const;
  std::string StateOf(size_t index) const;
  // Returns the LSNs known to be damaged on a replica, as "LSN 3, 7 to 9";
  // empty: none.
  std::string DamageOf(size_t index) const;
  // Returns the LSNs that no served replica has whole, in the same form.
  std::string LostLsns() const;
  // Returns a sentence without its full stop for each node whose certificate
  // has expired, or will within NodeTls::kWarnBeforeSeconds. `now_s`: seconds
  // since 1970.
  std::vector<std::string> CertificateWarnings(int64_t now_s) const;
  // Returns the reason why the log can't be opened now, in the order of
  // Verdict; OK: it can.
  absl::Status CanBeOpened() const;

  std::string ToText() const;
  Json ToJson() const;  // one object
  // Returns OK if W replicas are in sync, none is damaged or of another list of
  // members, and the log can be opened.
  absl::Status Verdict() const;
  // Returns the Verdict for fewer than W. Requires: !worst.ok().
  absl::Status TooFew(const absl::Status& worst) const;
  // Returns the Verdict, and OK only if nodes serve all replicas.
  absl::Status VerdictOfAll() const;

 private:
  // Returns the state of a replica without its damage.
  std::string StandingStateOf(size_t index) const;
};

struct StatusOptions {
  // Time until a log that is being written is measured again, in milliseconds;
  // 0: it is not.
  uint32_t sample_ms = 500;
  uint32_t timeout_ms = 5'000;  // as ClusterReaderOptions
};

// Asks the nodes. If fewer than W can be read, their reports don't show what is
// durable: then it reads their records. Errors: as ClusterReader::Open.
absl::StatusOr<ClusterStatus> TakeStatus(const LogSource& source,
                                         const StatusOptions& options);

// Returns a sentence without its full stop: the effect of a failed opening on
// the primary that was there before. Requires: before.primary != 0.
std::string WhatBecameOfPrimary(const ClusterStatus& before,
                                const ClusterStatus& after);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_REPORTS_CLUSTER_STATUS_H_
