// SPDX-License-Identifier: Apache-2.0
// work_directory: a directory of a program's own, removed at the end unless it
// holds evidence.
//
// Thread safety: one thread per object.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_WORK_DIRECTORY_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_WORK_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace alpheus::demo {

class WorkDirectory {
 public:
  // Errors: FailedPrecondition.
  static absl::StatusOr<WorkDirectory> Create(const std::string& parent);
  WorkDirectory(WorkDirectory&& other) noexcept
      : path_(std::exchange(other.path_, "")) {}
  ~WorkDirectory();

  const std::string& path() const { return path_; }
  // Keeps the directory; returns its path.
  std::string Keep() { return std::exchange(path_, ""); }

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Returns the default parent of such directories. Many small rounds belong into
// memory, if possible: on a disk they would wait.
std::string DefaultParent(bool in_memory);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_WORK_DIRECTORY_H_
