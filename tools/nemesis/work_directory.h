// SPDX-License-Identifier: Apache-2.0
// work_directory: a directory of a program's own, removed at the end unless it
// holds evidence.
//
// Thread safety: one thread per object.
#ifndef ALPHEUS_TOOLS_NEMESIS_WORK_DIRECTORY_H_
#define ALPHEUS_TOOLS_NEMESIS_WORK_DIRECTORY_H_

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
  // It stays; returns where it is.
  std::string Keep() { return std::exchange(path_, ""); }

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Where such directories are made if nothing else is asked for. Many small
// rounds belong into memory, if there is a place: they would wait for the disk.
std::string DefaultParent(bool in_memory);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_WORK_DIRECTORY_H_
