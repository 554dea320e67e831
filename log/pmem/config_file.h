// SPDX-License-Identifier: Apache-2.0
// config_file: reads files that an operator wrote: a list of members, a key, a
// certificate. Writes those that a command makes for the operator.
//
// Idea: a file with a secret is read only if its owner alone may use it: what
// others can read is no secret, and what they can write proves nothing.
//
// Thread safety: pure, but for the file; may block.
#ifndef ALPHEUS_LOG_PMEM_CONFIG_FILE_H_
#define ALPHEUS_LOG_PMEM_CONFIG_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace alpheus {

enum class ReadableBy {
  kOwner,   // alone: it has a secret
  kAnyone,  // it has none
};

// A kind of files. Sentences are without their full stops.
struct ConfigFileKind {
  absl::string_view name;  // "key file"
  size_t bytes_max;
  ReadableBy readers;
  // Remedy if the file can't be opened.
  absl::string_view if_missing = "Is the path right?";
  // Remedy if somebody else may have used its secret.
  absl::string_view if_exposed = "make a new one";
};

// Returns the text of a file. Errors call it by its kind and its path, and
// never show the text. Errors: FailedPrecondition (others than the owner may
// use a secret); InvalidArgument (no regular file; too large); the system's for
// a file that can't be opened or read.
absl::StatusOr<std::string> ReadConfigFile(const std::string& path,
                                           const ConfigFileKind& kind);

// Marks of a file that change when it is written or replaced. All zero: there
// is none.
struct ConfigFileStamp {
  uint64_t device = 0;
  uint64_t number = 0;
  int64_t bytes = 0;
  int64_t written_ns = 0;  // since 1970, as the next
  int64_t changed_ns = 0;

  bool operator==(const ConfigFileStamp&) const = default;
};

// Returns the stamp of what the path leads to now. Reads nothing.
ConfigFileStamp StampOf(const std::string& path);

// Writes the text of a new file, and makes it persistent. Errors: the system's.
absl::Status WriteConfigFile(int descriptor, absl::string_view text,
                             const std::string& path,
                             const ConfigFileKind& kind);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_CONFIG_FILE_H_
