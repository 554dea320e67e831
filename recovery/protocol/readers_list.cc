// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/readers_list.h"

#include "absl/strings/str_cat.h"

namespace alpheus::recovery {

bool IsOutdated(const ReadersList& readers, uint64_t configuration_id) {
  return configuration_id > readers.configuration_id;
}

absl::Status Outdated(const ReadersList& readers, uint64_t configuration_id) {
  return absl::FailedPreconditionError(absl::StrCat(
      "this replica has configuration ", configuration_id, ", ", readers.file,
      " says ", readers.configuration_id,
      ": the members changed since, and the log may have more than the file's "
      "members know. Use the newest cluster file"));
}

absl::Status NoSuchLog(const std::string& file, const std::string& log_name) {
  return absl::NotFoundError(absl::StrCat(
      "log ", log_name, ": all nodes of ", file,
      " answer, and none has a replica of this log. Is the name right? "
      "`alpheus format --cluster ",
      file, " --log ", log_name,
      " --size SIZE` makes a new log, unless one "
      "of this name was deleted"));
}

absl::Status CheckReadersList(const ReadersList& readers,
                              const ReadersList& replicas) {
  if (IsOutdated(readers, replicas.configuration_id)) {
    return Outdated(readers, replicas.configuration_id);
  }
  if (replicas.replica_count == readers.replica_count &&
      replicas.write_quorum == readers.write_quorum) {
    return absl::OkStatus();
  }
  const char* remedy =
      replicas.configuration_id < readers.configuration_id
          ? "; it could not be reached when the members changed, or `alpheus "
            "reconfigure` was not run with this file"
          : "; one configuration can't have both: use the cluster file with "
            "which the log was formatted, or last reconfigured";
  return absl::FailedPreconditionError(
      absl::StrCat("this replica is one of ", replicas.replica_count,
                   " with W = ", replicas.write_quorum, " in configuration ",
                   replicas.configuration_id, ", ", readers.file, " says ",
                   readers.replica_count, " with W = ", readers.write_quorum,
                   " in configuration ", readers.configuration_id, remedy));
}

}  // namespace alpheus::recovery
