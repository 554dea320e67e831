// SPDX-License-Identifier: Apache-2.0
// scratch_file: names for files that a command makes for its own use beside
// something of the user's, and their removal.
#ifndef ALPHEUS_TOOLS_CLI_IO_SCRATCH_FILE_H_
#define ALPHEUS_TOOLS_CLI_IO_SCRATCH_FILE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace alpheus::cli {

// The folder `path`, or the folder of the file `path`.
// Errors: NotFound (no such path); InvalidArgument (neither folder nor file: a
// device would have to be overwritten).
absl::StatusOr<std::string> FolderBeside(const std::string& path);

// A name in `folder`, unlikely to be taken; removes what is called so when it
// goes. Whoever creates the file must refuse one that exists.
class ScratchFile {
 public:
  ScratchFile(const std::string& folder, const std::string& purpose);
  ~ScratchFile() { Remove(); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }
  // At once, so that a process that is killed leaves nothing; a mapping stays.
  void Remove();

 private:
  const std::string path_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_SCRATCH_FILE_H_
