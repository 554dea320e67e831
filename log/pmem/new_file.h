// SPDX-License-Identifier: Apache-2.0
// new_file: makes a file that gets its name only when it is whole.
//
// Idea: a process may be killed, or a machine lose power, while a file is made.
// So the file is made without a name (O_TMPFILE), and linked when its content
// is persistent; an unfinished file is gone with the process. On file systems
// without such files it gets a working name beside its path, and is renamed.
// The next making of the same file removes what a killed one left there.
//
// Invariants:
//   NF1. The name leads to a whole file or to none.
//   NF2. An existing file is replaced in one step by OpenToReplace, and by no
//        other call.
//   NF3. A file under the working name is removed only by the holder of its
//        lock, while the name still leads to it, and only if it has another
//        name or was never used.
// Persistence: after Publish returns OK the name is durable in its folder. A
// power cut before that leaves the name or not; if it leaves the name, the
// content is there too.
// Thread safety: one thread per object. Several processes may make the same
// file at once: one of them publishes it.
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

// Use of existing bytes: how far they may be overwritten.
enum class RegionUse {
  kNothing,   // as a file being made, before it has content
  kUnopened,  // whole, and never used
  kUsed,      // anything else
};
// `is_device`: bytes in the place of later content mean nothing.
using RegionUseFunction =
    absl::FunctionRef<RegionUse(std::span<std::byte>, bool is_device)>;

class NewFile {
 public:
  // Mode of a region: its owner may write it, its group may read it.
  static constexpr unsigned kRegionMode = 0640;

  // Opens an empty file, with the writer's lock; without a name where the file
  // system supports that. Errors: AlreadyExists (the path is taken); as
  // OpenNamed.
  static absl::StatusOr<NewFile> Open(const std::string& path,
                                      RegionUseFunction use_of,
                                      unsigned mode = kRegionMode);
  // Opens it under WorkingName. Errors: as NewFileError; FailedPrecondition
  // (another process is making this file); AlreadyExists (a log has the working
  // name).
  static absl::StatusOr<NewFile> OpenNamed(const std::string& path,
                                           RegionUseFunction use_of,
                                           unsigned mode = kRegionMode);
  // Opens it to replace the file that the path leads to, through links.
  // Processes that have that file open keep it, without a name. Errors: as
  // OpenNamed, except AlreadyExists for the path; NotFound (no such file).
  static absl::StatusOr<NewFile> OpenToReplace(const std::string& path,
                                               RegionUseFunction use_of,
                                               unsigned mode = kRegionMode);
  static std::string WorkingName(const std::string& path);

  NewFile(NewFile&& other) noexcept = default;
  // Removes the file if it was not published.
  ~NewFile();

  int fd() const { return fd_.get(); }
  // Returns a path that leads to the file until the descriptor is closed.
  std::string open_path() const;

  // Gives the file its name. Requires: its content is persistent.
  // Errors: AlreadyExists (the path was taken meanwhile: nothing was changed);
  // as NewFileError.
  absl::Status Publish();
  // Gives descriptor and lock to the caller. Requires: published.
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

// Returns the use of an open file. Errors: as FileError. Requires: the caller
// has the writer's lock, or nobody writes.
absl::StatusOr<RegionUse> UseOfFile(const std::string& path, int fd,
                                    RegionUseFunction use_of);

// Makes the entries of the folder of `path` durable.
absl::Status SyncFolderOf(const std::string& path);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_NEW_FILE_H_
