// SPDX-License-Identifier: Apache-2.0
// new_file: a file that gets its name when it is whole.
//
// Idea: a process may be killed, or a machine lose power, while a file is made.
// So it is made without a name (O_TMPFILE), and linked when its content is
// persistent: what was not finished is gone with the process. File systems
// without such files get one under a working name beside it, which is renamed;
// the next making of the same file removes what a killed one left there.
//
// Invariants:
//   NF1. The name leads to a whole file or to none.
//   NF2. What the name leads to already is replaced in one step by
//        OpenToReplace, and by nothing else.
//   NF3. A file under the working name is removed only by who holds its lock,
//        while the name still leads to it, and if it has another name or was
//        never used.
// Persistence: after Publish OK the name is in its folder durably. A power cut
// before leaves the name or not; if it is there, so is the content.
// Thread safety: one thread per object; processes may make the same file at
// once: one of them publishes it.
// References: open(2) O_TMPFILE, linkat(2), renameat2(2) RENAME_NOREPLACE.
#ifndef ALPHEUS_LOG_PMEM_NEW_FILE_H_
#define ALPHEUS_LOG_PMEM_NEW_FILE_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/pmem/file_descriptor.h"

namespace alpheus {

// What bytes that are there already hold; how far nobody may miss them.
enum class RegionUse {
  kNothing,   // what the making of a file leaves before it has content
  kUnopened,  // whole, and never used
  kUsed,      // anything else
};
// `is_device`: what lies where content goes later means nothing.
using RegionUseFunction =
    absl::FunctionRef<RegionUse(std::span<std::byte>, bool is_device)>;

class NewFile {
 public:
  // Of a region: its owner's, and its group may read it.
  static constexpr unsigned kRegionMode = 0640;

  // An empty file, with the writer's lock; without a name where the file system
  // can do that. Errors: AlreadyExists (the path is taken); as OpenNamed.
  static absl::StatusOr<NewFile> Open(const std::string& path,
                                      RegionUseFunction use_of,
                                      unsigned mode = kRegionMode);
  // The same, under WorkingName. Errors: as NewFileError; FailedPrecondition
  // (another process is making this file); AlreadyExists (a log has the working
  // name).
  static absl::StatusOr<NewFile> OpenNamed(const std::string& path,
                                           RegionUseFunction use_of,
                                           unsigned mode = kRegionMode);
  // The same, to take the place of the file that the path leads to, through
  // links: whoever has that open keeps it, without a name. Errors: as
  // OpenNamed, but AlreadyExists of the path; NotFound (nothing is there).
  static absl::StatusOr<NewFile> OpenToReplace(const std::string& path,
                                               RegionUseFunction use_of,
                                               unsigned mode = kRegionMode);
  static std::string WorkingName(const std::string& path);

  NewFile(NewFile&& other) noexcept = default;
  // A file that was not published is gone.
  ~NewFile();

  int fd() const { return fd_.get(); }
  // Leads to the file until the descriptor is closed.
  std::string open_path() const;

  // Gives it its name. Requires: its content is persistent.
  // Errors: AlreadyExists (the path was taken meanwhile: nothing was changed);
  // as NewFileError.
  absl::Status Publish();
  // The descriptor and its lock are the caller's. Requires: published.
  int Release();

 private:
  NewFile(std::string path, std::string working_name, FileDescriptor fd,
          bool replaces = false)
      : path_(std::move(path)),
        working_name_(std::move(working_name)),
        fd_(std::move(fd)),
        replaces_(replaces) {}

  static absl::StatusOr<NewFile> OpenWorking(const std::string& path,
                                             RegionUseFunction use_of,
                                             unsigned mode, bool replaces);

  static absl::Status RemoveRemains(const std::string& path,
                                    RegionUseFunction use_of);
  absl::Status GiveName();

  std::string path_;
  std::string working_name_;  // empty: it has none
  FileDescriptor fd_;
  bool replaces_ = false;
};

// Errors: as FileError. Requires: the caller has the writer's lock, or nobody
// writes.
absl::StatusOr<RegionUse> UseOfFile(const std::string& path, int fd,
                                    RegionUseFunction use_of);

// Makes entries of the folder that `path` lies in durable.
absl::Status SyncFolderOf(const std::string& path);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_NEW_FILE_H_
