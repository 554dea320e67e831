// SPDX-License-Identifier: Apache-2.0
// region: the mapped memory that holds one replica of a log, and its lock.
//
// Idea: a region is an fsdax file, a device-DAX, a plain file or anonymous
// memory; the layers above see only bytes and `medium`. One writer at a time
// opens a file region (an open-file-description lock, gone with the process);
// any number of readers open it without a lock.
//
// Invariants:
//   RG1. While a writable Region exists, no other process and no other Region
//        of this process has the same file open for writing.
//   RG2. Every byte of a writable file region has its block allocated. So a
//        full file system is noticed when formatting, or when a copy with holes
//        is opened, and not by a store.
//   RG3. The file of a region with a shadow changes only by flushes of the
//        shadow (shadow_persistence.h); readers see nothing else.
//   RG4. An access to a page that the file no longer has, or that its file
//        system can't give, raises the alarm and does not end the process
//        (bus_guard.h).
//   RG5. The lock ends with the region in the process that took it, whatever a
//        fork's child does: the child has the same open file.
// Thread safety: const members concurrently; the users synchronise access to
// the bytes.
// References: libpmem(7), fcntl(2) F_OFD_SETLK.
#ifndef ALPHEUS_LOG_PMEM_REGION_H_
#define ALPHEUS_LOG_PMEM_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/fork_watch.h"
#include "log/pmem/bus_guard.h"
#include "log/pmem/file_view.h"
#include "log/pmem/file_watch.h"
#include "log/pmem/new_file.h"
#include "log/pmem/region_alarm.h"

namespace alpheus {

enum class RegionMedium {
  kPersistentMemory,  // DAX: flushed by CPU instructions
  kFile,              // page cache: flushed by msync
  kAnonymous,         // memory of this process: gone with it
};

// "pmem", "file" or "anonymous".
const char* RegionMediumName(RegionMedium medium);

struct RegionContent;

class Region {
 public:
  // Creates a file of `bytes` zero bytes with all blocks allocated, durable in
  // its directory, and opens it for writing. Whenever the process ends, the
  // name leads to a whole file or to none (new_file.h). An existing device-DAX
  // is taken as it is if `bytes` is 0 or at most the device's size. Errors:
  // AlreadyExists; ResourceExhausted (file system full: the file is removed
  // again); InvalidArgument (bytes, path); NotFound (no such folder);
  // Unavailable (other system error); FailedPrecondition (another writer uses
  // the device; another process is making the file).
  static absl::StatusOr<Region> Create(const std::string& path, size_t bytes);

  // Creates a file with content, which is there whenever the name is. A file or
  // device that holds nothing (RegionUse), as a killed creation may leave it,
  // is taken and made again. Errors: also AlreadyExists for a device that is in
  // use, and those of content.write: then there is no file, or one that holds
  // nothing.
  static absl::StatusOr<Region> Create(const std::string& path, size_t bytes,
                                       const RegionContent& content);

  // Creates a file with content in the place of an existing one that the caller
  // knows to be useless, in one step: before that, and after an error, the old
  // one is there. Processes that have it open keep it. Errors: as Create;
  // NotFound; AlreadyExists for a device, which can't be replaced.
  static absl::StatusOr<Region> Replace(const std::string& path, size_t bytes,
                                        const RegionContent& content);

  // Opens an existing file or device for writing, takes its lock, and allocates
  // holes that a copy may have.
  // Errors: NotFound; FailedPrecondition when another writer has it open;
  // InvalidArgument (the path); ResourceExhausted (no room for the holes);
  // Unavailable (other system error); DataLoss (an empty file).
  static absl::StatusOr<Region> OpenForWriting(const std::string& path);

  // Maps an existing file or device read-only. Takes no lock.
  static absl::StatusOr<Region> OpenForReading(const std::string& path);

  // Makes a region of zeroed memory of this process; `name` is its path().
  static absl::StatusOr<Region> Anonymous(size_t bytes,
                                          std::string name = "(anonymous)");

  // Returns a copy in memory of `bytes` bytes, zeros after this region's end;
  // not writable. Requires: bytes >= bytes().size().
  absl::StatusOr<Region> ZeroPadded(size_t bytes) const;

  // Makes `memory` the shadow: fills it from the file and makes it bytes();
  // medium_bytes() stays the file's. Persists in the file all that it read,
  // since a killed process may have left it in the cache. Requires: writable,
  // persistent memory, no shadow yet; `memory` is anonymous, writable, of the
  // same size.
  void UseShadow(Region memory);

  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::span<std::byte> bytes() const {
    return is_shadowed() ? shadow_->bytes() : medium_bytes();
  }
  // Returns the mapping itself.
  std::span<std::byte> medium_bytes() const { return {data_, size_}; }
  bool is_shadowed() const { return shadow_ != nullptr; }
  RegionMedium medium() const { return medium_; }
  // Returns whether a writable file is mapped through the page cache; else the
  // mapping is the medium itself, or anonymous.
  bool is_in_page_cache() const { return is_in_page_cache_; }
  bool writable() const { return writable_; }
  // Ends writing to this anonymous region: HasWriter is false from now on.
  void Freeze() { writable_ = false; }
  // Releases the lock of a writable file region. The bytes keep their place,
  // and from here on are memory of this process for all who still write there
  // (RG1). Bytes that are not changed here may show what others write to the
  // file. Errors: Unavailable: the lock is kept.
  absl::Status Detach();
  // Checks that the path still leads to the file of this region, whole, and
  // raises the alarm if not. Does nothing for anonymous memory and devices.
  // Takes some microseconds. Requires: not detached.
  void CheckFile() const;
  // Returns whether CheckFile watches a file.
  bool is_watched() const { return watch_.is_watching(); }
  // Alarm that makes fences fail once it is raised. Never null; outlives the
  // region.
  const std::shared_ptr<RegionAlarm>& alarm() const { return alarm_; }
  // Returns a warning about the medium for the operator, or "".
  const std::string& warning() const { return warning_; }

  // Returns the path as given; "(anonymous)" for anonymous memory.
  const std::string& path() const { return path_; }

  // Returns a view to read bytes() without mapping; a view of no file if
  // bytes() is no regular file.
  FileView file() const;

  // Returns true while a writer (of this process or another) has the file open.
  bool HasWriter() const;

 private:
  Region() = default;
  static absl::StatusOr<Region> CreateOnDevice(const std::string& path,
                                               size_t bytes);
  static absl::StatusOr<Region> CreateFile(const std::string& path,
                                           size_t bytes,
                                           const RegionContent& content);
  static absl::StatusOr<Region> FillNewFile(NewFile file,
                                            const std::string& path,
                                            size_t bytes,
                                            const RegionContent& content);
  static absl::StatusOr<Region> CreateInUnused(const std::string& path,
                                               size_t bytes,
                                               const RegionContent& content,
                                               const absl::Status& exists);
  void Guard();  // guards the mapping
  void Watch();  // watches the path
  static absl::StatusOr<Region> MapForWriting(const std::string& path,
                                              const std::string& open_path,
                                              int fd);
  void Release();

  std::unique_ptr<Region> shadow_;  // shadow; nullptr: none
  std::byte* data_ = nullptr;
  size_t size_ = 0;         // used by the log
  size_t mapped_size_ = 0;  // mapped (a device may be larger)
  RegionMedium medium_ = RegionMedium::kAnonymous;
  bool writable_ = false;
  bool is_in_page_cache_ = false;
  bool mapped_by_libpmem_ = false;
  int fd_ = -1;  // holds the lock while writable
  ForkWatch fork_watch_;
  std::shared_ptr<RegionAlarm> alarm_;
  FileWatch watch_;
  BusGuard guard_;
  std::string warning_;
  std::string path_;
};

// Content of a new region.
struct RegionContent {
  // Writes it into zeros, or onto a device, and persists it.
  absl::FunctionRef<absl::Status(Region&)> write;
  RegionUseFunction use_of;  // of existing bytes
  // Zero bytes at the start by which a device is known to hold nothing.
  size_t fixed_bytes = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_REGION_H_
