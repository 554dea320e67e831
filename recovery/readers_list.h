// SPDX-License-Identifier: Apache-2.0
// readers_list: whether the list of members by which somebody reads a log is
// the one that a replica has.
//
// Idea: whoever reads has a cluster file, and no part in the changes of the
// members. A replica says which configuration it has. If that is newer than the
// file's, the members of the file may all know less than the log has: one that
// left keeps what it had, and says nothing wrong. So a newer configuration is
// an error of the whole reading, also where N and W are the same. An older one
// is that of a replica which was away: the newest epoch is on others.
//
// Thread safety: pure.
// References: protocol P-A5, P-H18; docs/design/reading_and_scrubbing.md.
#ifndef ALPHEUS_RECOVERY_READERS_LIST_H_
#define ALPHEUS_RECOVERY_READERS_LIST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace alpheus {

// Of a cluster file, or a superline.
struct ReadersList {
  uint64_t configuration_id = 1;
  uint32_t replica_count = 1;             // N
  uint32_t write_quorum = 1;              // W
  std::string file = "the cluster file";  // for messages
};

// Whether the members changed since the reader's list was made.
bool IsOutdated(const ReadersList& readers, uint64_t configuration_id);

// Why nothing may be read by a list that is outdated. Requires: IsOutdated.
absl::Status Outdated(const ReadersList& readers, uint64_t configuration_id);

// NotFound: all members answered, and none has a replica of the log.
absl::Status NoSuchLog(const std::string& file, const std::string& log_name);

// Errors: FailedPrecondition (the replica's is newer; or N or W differ, so that
// too much could pass for durable).
absl::Status CheckReadersList(const ReadersList& readers,
                              const ReadersList& replicas);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_READERS_LIST_H_
