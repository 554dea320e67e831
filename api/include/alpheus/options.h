// SPDX-License-Identifier: Apache-2.0
// options: how a log is formatted, opened and forced.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/core/durability/flush_order.h"

namespace alpheus {

struct FormatOptions {
  // File to create (on a DAX file system it is used as persistent memory), or
  // an existing device-DAX.
  std::string path = {};
  // Of the region, superline and epoch table included; at least 108 KiB.
  // 0 with a device-DAX: the whole device.
  uint64_t region_bytes = 64 << 20;
  // Instead of `path`: makes the replicas of a new log on all members of this
  // cluster, whose nodes must run.
  std::string cluster_file = {};
  std::string log_name = "main";
};

// A change of who keeps a replicated log.
struct ChangeMembersOptions {
  // The list of members from then on, with a higher configuration_id, and the
  // one that the log has. Empty: no node and no W changes.
  std::string cluster_file = {};
  std::string previous_cluster_file = {};
  // Members whose replica was lost, with its medium: an empty one takes its
  // place there.
  std::vector<uint64_t> replaced = {};
  std::string log_name = "main";
  // Until it is given up, in milliseconds: a whole log is copied to each
  // newcomer, by way of this process.
  uint32_t timeout_ms = 60'000;
};

// A log that several nodes keep.
struct ReplicationOptions {
  // TOML file that names the members and how many of them it takes; see
  // tools/samples/cluster.toml. Empty: a local log, and nothing below counts.
  std::string cluster_file = {};
  // Of this process: a member of the cluster that may be primary.
  uint64_t node = 0;
  // Of the log among those of the cluster: 1 to 64 letters, digits, '.', '_'
  // and '-', the first a letter or a digit.
  std::string log_name = "main";

  FlushOrder flush_order = FlushOrder::kRemoteFirst;
  // How long Open waits for more replicas once enough have answered, in
  // milliseconds: a replica that is not in the epoch from its beginning holds
  // nothing of it.
  uint32_t gather_ms = 500;
  // How long Open tries, in milliseconds; other primaries may be at it, and
  // replicas may be away.
  uint32_t open_timeout_ms = 10'000;
  // A backup with records under way of which nothing is heard for so long, in
  // milliseconds, is given up; with fewer than W replicas left the log fails.
  // While a large batch still arrives that is heard. Time in which this process
  // was stopped hardly counts.
  uint32_t silence_ms = 1'000;
  // So is one that has not acknowledged more bytes than these, sent or not:
  // less than the largest burst of records would give up healthy ones. 0: the
  // ring's capacity, which nothing exceeds; silence_ms alone decides then.
  uint64_t lag_bytes_max = 0;
  // Batches on their way to one backup, 1 to 1024.
  uint32_t batches_max = 64;
  // How often a call that waits for backups yields the core before it sleeps:
  // sleeping costs some 70 us, yielding keeps a core busy. 0: sleeps at once.
  uint32_t yields = 200;
  // The log's own replica is read through in the background, and repaired from
  // the others (docs/design/reading_and_scrubbing.md#scrubbing): so many bytes
  // a second, 0: only when it is asked for (`alpheus scrub`); and so many
  // seconds from the end of a pass to the next one. What it finds is in
  // replication_status().
  uint64_t scrub_bytes_per_second = uint64_t{8} << 20;
  uint32_t scrub_interval_s = 24 * 3'600;
};

struct LogOptions {
  // Region file or device; empty: anonymous memory that lives and dies with
  // the Log (anonymous_bytes), for tests and scratch logs. Of a replicated log:
  // the replica of this process's node, which its daemon hands over while it
  // runs; empty: this process keeps no replica that counts (remote-only).
  std::string path = {};
  uint64_t anonymous_bytes = 64 << 20;
  // Refuse a region that holds another log.
  std::optional<Uuid> expected_log_id = std::nullopt;
  // Clean all records up to and including this LSN before the new epoch is
  // opened; the way out when the epoch table is full. 0: none.
  Lsn cleanup_through{0};
  // Cap on records reserved and not durable; rounded up to a power of two,
  // 2 to 1,048,576.
  uint32_t exposure_records_max = 4096;
  // Records that were completed and that nobody forced are forced after this
  // time, at most twice as long; a log that was idle so long notes its last
  // record as durable, so that damage to it is told from a torn write. A thread
  // of the log does it, which sleeps while the log is idle. 0: never, and no
  // thread. Of a replicated log 1 to 500,000: its thread also answers the
  // backups.
  uint32_t idle_force_us = 100'000;
  // Added to each fence to emulate slower media, 0 to 1,000,000 ns; 0: off.
  // The papers use 150 and 200. Only where the medium is flushed by CPU
  // instructions.
  uint32_t emulated_latency_ns = 0;
  ReplicationOptions replication = {};
};

struct ForceOptions {
  // Force only LSNs divisible by this; 1: every one. 0 is refused, and more
  // than half of LogOptions::exposure_records_max.
  uint32_t frequency = 1;
  // Group commit instead, if not 0: the record that is the group-th since the
  // last group forces all of them. Same limit; not together with frequency.
  uint32_t group = 0;
  Deadline deadline = {};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_
