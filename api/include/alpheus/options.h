// SPDX-License-Identifier: Apache-2.0
// options: how a log is formatted, opened and forced.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_

#include <cstdint>
#include <functional>
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
  // Size of the region in bytes, superline and epoch table included; at least
  // 108 KiB. 0 with a device-DAX: the whole device.
  uint64_t region_bytes = 64 << 20;
  // Cluster file, in place of `path`: the replicas of a new log are made on all
  // members of this cluster, whose nodes must run. Empty: a local log.
  std::string cluster_file = {};
  std::string log_name = "main";
  // Time after which the members are given up, in milliseconds; one that does
  // not reply to a request, after a third of it.
  uint32_t timeout_ms = 30'000;
  // Node for which this process asks, by its certificate, if the cluster
  // encrypts ([encryption] of the cluster file); 0: an operator.
  uint64_t as_node = 0;
};

// Change of the members that keep a replicated log, or of W.
struct ChangeMembersOptions {
  // Cluster files: the new list of members, with a higher configuration_id, and
  // the list that the log has now. Empty: neither members nor W change.
  std::string cluster_file = {};
  std::string previous_cluster_file = {};
  // Members whose replica was lost with its medium; each gets an empty one.
  std::vector<uint64_t> replaced = {};
  std::string log_name = "main";
  // Time after which the change is given up, in milliseconds. It includes
  // copying the whole log to each joining member, by the process that has the
  // log open or by this one. If no process has begun the change after a third
  // of it, this one makes it.
  uint32_t timeout_ms = 60'000;
  // Time that the change waits for more members once enough have answered, and
  // once more when enough have the new list, in milliseconds. A member that
  // misses it is in RecoveryReport::absent_members. It joins once a process has
  // the log open; until then don't stop others, as it may take all of them to
  // open.
  uint32_t gather_ms = 5'000;
  // Node for which this process asks, by its certificate, if the cluster
  // encrypts ([encryption] of the cluster file); 0: an operator.
  uint64_t as_node = 0;
};

// Options of a log that several nodes keep.
struct ReplicationOptions {
  // TOML file with the members and quorums; see tools/samples/cluster.toml.
  // Empty: a local log, and the options below have no effect.
  // Errors of every call that reads such a file: InvalidArgument (content of
  // the file or of its key; name of the log); FailedPrecondition (no key, or
  // one that other users may read); NotFound, PermissionDenied (a file that
  // can't be read); NotFound, Unavailable (a host's name that leads nowhere).
  std::string cluster_file = {};
  // Member of the cluster in whose name this process opens the log; it must be
  // allowed to be primary. Its number becomes a part of the epoch. With
  // LogOptions::path this process runs on that member's machine and keeps its
  // replica. Without a path it may run on any machine that reaches the members,
  // and the member's daemon continues to serve its replica, as a backup.
  uint64_t node = 0;
  // Name of the log among those of the cluster: 1 to 64 letters, digits, '.',
  // '_' and '-', the first a letter or a digit.
  std::string log_name = "main";

  FlushOrder flush_order = FlushOrder::kRemoteFirst;
  // Time that Open waits for more replicas once enough have answered, in
  // milliseconds; at most half of the time that open_timeout_ms leaves. A
  // replica that misses the start of the epoch must resync.
  uint32_t gather_ms = 500;
  // Time that Open tries, in milliseconds; other primaries may be opening the
  // log too, and replicas may be down.
  uint32_t open_timeout_ms = 10'000;
  // Time without news from a backup with records in flight, in milliseconds,
  // after which it is dropped; with fewer than W replicas left the log fails.
  // Pieces of a large batch that arrive count as news. Time in which this
  // process was stopped hardly counts.
  uint32_t ack_timeout_ms = 1'000;
  // A backup with more unacknowledged bytes than this, sent or not, is dropped.
  // Set it above your largest burst of records. 0: the ring's capacity, which
  // is never exceeded, so that only ack_timeout_ms decides.
  uint64_t lag_bytes_max = 0;
  // Batches in flight to one backup, 1 to 1024.
  uint32_t batches_max = 64;
  // Number of times that a call waiting for backups yields the core before it
  // sleeps. Sleeping costs some 70 us; yielding keeps a core busy. 0: sleeps at
  // once.
  uint32_t yields = 200;
  // How often the backups hear this primary while nothing is appended, in
  // milliseconds, so that candidates may know it is there (candidate.h). 0:
  // never, and no candidate takes its silence for its end.
  uint32_t heartbeat_ms = 0;
  // Speed of background scrubbing of the log's own replica, in bytes per second
  // (docs/design/reading_and_scrubbing.md#scrubbing); damage is repaired from
  // other replicas. 0: only on request (`alpheus scrub`). Findings are in
  // replication_status().
  uint64_t scrub_bytes_per_second = uint64_t{8} << 20;
  // Seconds from the end of one pass to the start of the next.
  uint32_t scrub_interval_s = 24 * 3'600;
  // Gets one sentence for an operator when the connections to the nodes need a
  // look: new certificates were taken, the files of new ones are of no use, or
  // the certificate of this process expires soon ([encryption] of the cluster
  // file). Called by any thread that uses a log of this process, with locks
  // held: it should be short, and may not use a log. Empty: nobody is told.
  std::function<void(const std::string&)> say = {};
};

struct LogOptions {
  // Region file or device. Empty: anonymous memory (anonymous_bytes) that lives
  // and dies with the Log, for tests and scratch logs. In a replicated log: the
  // replica of this process's node, which its daemon lends while this process
  // runs. Empty there: this process keeps no replica that counts (remote-only).
  std::string path = {};
  uint64_t anonymous_bytes = 64 << 20;
  // Id that the region's log must have, else it is refused; empty: any.
  std::optional<Uuid> expected_log_id = std::nullopt;
  // Cleans all records up to and including this LSN before the new epoch opens.
  // Needed when the epoch table is full. 0: none.
  Lsn cleanup_through{0};
  // Cap on records that are reserved and not durable; rounded up to a power of
  // two, 2 to 1,048,576. Log::ExposedMax() is the result.
  uint32_t exposure_records_max = 4096;
  // Time after which the log forces completed records that nobody forced, in
  // microseconds; it may take twice as long. A log that was idle for this time
  // also notes its last record as durable, so that later damage to it is not
  // taken for a torn write. A thread of the log does both, and sleeps while the
  // log is idle. 0: never, and no thread. In a replicated log 1 to 500,000: its
  // thread also answers the backups.
  uint32_t idle_force_us = 100'000;
  // Delay added to each fence to emulate slower media, 0 to 1,000,000 ns; 0:
  // off. The papers use 150 and 200. Only where the medium is flushed by CPU
  // instructions.
  uint32_t emulated_latency_ns = 0;
  ReplicationOptions replication = {};
};

struct ForceOptions {
  // Forces only LSNs divisible by this; 1: every one. Refused: 0, and more than
  // half of Log::ExposedMax().
  uint32_t frequency = 1;
  // Group commit: every group-th record since the last group forces the whole
  // group. 0: off. Same limit; not together with frequency.
  uint32_t group = 0;
  Deadline deadline = {};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_OPTIONS_H_
