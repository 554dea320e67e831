// SPDX-License-Identifier: Apache-2.0
// replication_status: which members keep a log while it is written, for people
// and for tests.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_REPLICATION_STATUS_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_REPLICATION_STATUS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace alpheus {

struct ReplicationStatus {
  uint32_t replicas = 1;      // N
  uint32_t write_quorum = 1;  // W: fewer in sync fail the log
  // Replicas that get what is appended, and whose acks count. A replica that
  // has just resynced may still be behind.
  uint32_t in_sync = 1;

  // The log has failed: it must be opened again.
  bool has_failed = false;

  // Members that resynced since the log was opened, or its members changed
  // last, and failed attempts.
  uint64_t joins = 0;
  uint64_t failed_joins = 0;
  // A member is resyncing at this moment.
  bool joining = false;

  // Scrubbing of this process's own replica since the log was opened
  // (docs/design/reading_and_scrubbing.md#scrubbing): passes over all of it,
  // and what they found. Each pass counts its findings again.
  uint64_t scrub_passes = 0;
  uint64_t scrubbed_records = 0;
  uint64_t damaged_records = 0;
  uint64_t repaired_records = 0;

  // Members out of sync: "node 3", and the reason if it is known.
  std::vector<std::string> out_of_sync;
  // Their ids, in the same order, and those of all members; of a local log
  // none.
  std::vector<uint64_t> out_of_sync_nodes;
  std::vector<uint64_t> nodes;

  // One line for people.
  std::string ToString() const;

  bool operator==(const ReplicationStatus&) const = default;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_REPLICATION_STATUS_H_
