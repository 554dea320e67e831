// SPDX-License-Identifier: Apache-2.0
// readers_list: compares the list of members by which a log is read with that
// of a replica.
//
// Idea: a reader has a cluster file, and no part in changes of the members. A
// replica says which configuration it has.
//   * Newer than the file's: an error of the whole reading, even if N and W are
//     the same. The members in the file may all lack records of the log: a
//     member that left keeps what it had, and says nothing wrong.
//   * Older: the replica was out of sync when the members changed. No error:
//     others have the newest epoch.
//
// Thread safety: pure.
// References: protocol P-A5, P-H18; docs/design/reading_and_scrubbing.md.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_READERS_LIST_H_
#define ALPHEUS_RECOVERY_PROTOCOL_READERS_LIST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace alpheus::recovery {

// The list in a cluster file, or in a superline.
struct ReadersList {
  uint64_t configuration_id = 1;
  uint32_t replica_count = 1;             // N
  uint32_t write_quorum = 1;              // W
  std::string file = "the cluster file";  // for messages
};

// Returns true if the members changed since the reader's list was made.
bool IsOutdated(const ReadersList& readers, uint64_t configuration_id);

// Returns why nothing may be read by an outdated list. Requires: IsOutdated.
absl::Status Outdated(const ReadersList& readers, uint64_t configuration_id);

// Returns NotFound: all members answered, and none has a replica of the log.
absl::Status NoSuchLog(const std::string& file, const std::string& log_name);

// Compares the lists. Errors: FailedPrecondition (the replica's is newer; or N
// or W differ, so that too much could pass for durable).
absl::Status CheckReadersList(const ReadersList& readers,
                              const ReadersList& replicas);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_READERS_LIST_H_
