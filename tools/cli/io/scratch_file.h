// SPDX-License-Identifier: Apache-2.0
// scratch_file: names for temporary files of a command beside the user's data,
// and their removal.
#ifndef ALPHEUS_TOOLS_CLI_IO_SCRATCH_FILE_H_
#define ALPHEUS_TOOLS_CLI_IO_SCRATCH_FILE_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace alpheus::cli {

// Returns the folder `path`, or the folder of the file `path`.
// Errors: NotFound (no such path); InvalidArgument (neither folder nor file: a
// device would have to be overwritten).
absl::StatusOr<std::string> FolderBeside(const std::string& path);

// Name in `folder`, unlikely to be taken; removes the file of that name at the
// end. The creator of the file must refuse an existing one.
class ScratchFile {
 public:
  ScratchFile(const std::string& folder, const std::string& purpose);
  ~ScratchFile() { Remove(); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }
  // Removes the file at once, so that a killed process leaves nothing; a
  // mapping stays.
  void Remove();

 private:
  const std::string path_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_SCRATCH_FILE_H_
