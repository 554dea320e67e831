// SPDX-License-Identifier: Apache-2.0
// region: the mapped memory that holds one replica of a log, and its lock.
//
// Idea: a region is an fsdax file, a device-DAX, a plain file or anonymous
// memory; everything above sees only bytes and `medium`. A file region is
// opened by one writer at a time (an open-file-description lock, gone with the
// process) and by any number of readers, which take no lock.
//
// Invariants:
//   RG1. While a writable Region exists, no other process and no other Region
//        of this process has the same file open for writing.
//   RG2. Every byte of a writable file region has its block allocated, so that
//        a full file system is met when formatting, or when a copy with holes
//        is opened, and not by a store.
//   RG3. The file of a landed region changes only by what its bytes() are
//        copied there for (landing_persistence.h); readers see nothing else.
//   RG4. An access to a page that the file does not have any more, or that its
//        file system can't give, raises the alarm and ends nothing
//        (bus_guard.h).
//   RG5. The lock goes with the region of the process that took it, and with
//        nothing that a fork's child does: the child has the same open file.
// Thread safety: const members concurrently; the bytes are the users' affair.
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
  // its directory, and opens it for writing. The name leads to a whole file or
  // to none, whenever the process ends (new_file.h). A device-DAX that exists
  // is taken as it is when `bytes` is 0 or not larger than the device. Errors:
  // AlreadyExists; ResourceExhausted (file system full: the file is removed
  // again); InvalidArgument (bytes, path); NotFound (no such folder);
  // Unavailable (other system error); FailedPrecondition (device in use by
  // another writer; another process is making the file).
  static absl::StatusOr<Region> Create(const std::string& path, size_t bytes);

  // The same with content, which is there whenever the name is. A file that
  // holds nothing (RegionUse), as a making that was killed could leave it, is
  // taken and made anew in its place, and so is a device. Errors: also
  // AlreadyExists of a device that is in use, and those of content.write: then
  // there is no file, or one that holds nothing.
  static absl::StatusOr<Region> Create(const std::string& path, size_t bytes,
                                       const RegionContent& content);

  // The same in the place of the file that is there, which the caller knows to
  // be of no use to anybody, in one step: until then, and after an error, that
  // one is there. Who has it open keeps it. Errors: as Create; NotFound;
  // AlreadyExists of a device, which can't be replaced so.
  static absl::StatusOr<Region> Replace(const std::string& path, size_t bytes,
                                        const RegionContent& content);

  // Opens an existing file or device for writing, takes its lock, and allocates
  // the holes that a copy may have.
  // Errors: NotFound; FailedPrecondition when another writer has it open;
  // InvalidArgument (the path); ResourceExhausted (no room for the holes);
  // Unavailable (other system error); DataLoss (an empty file).
  static absl::StatusOr<Region> OpenForWriting(const std::string& path);

  // Maps an existing file or device read-only. Takes no lock.
  static absl::StatusOr<Region> OpenForReading(const std::string& path);

  // Zeroed memory of this process; `name` is what path() says.
  static absl::StatusOr<Region> Anonymous(size_t bytes,
                                          std::string name = "(anonymous)");

  // A copy in memory of `bytes` bytes, zeros where this region ends; not
  // writable. Requires: bytes >= bytes().size().
  absl::StatusOr<Region> ZeroPadded(size_t bytes) const;

  // From here on bytes() is `memory`, filled with what the file holds, and
  // medium_bytes() the file's, where what was read is persisted (a process that
  // was killed may have left it in the cache). Requires: writable, persistent
  // memory, not landed; `memory` is anonymous, writable, of the same size.
  void LandIn(Region memory);

  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  std::span<std::byte> bytes() const {
    return is_landed() ? landing_->bytes() : medium_bytes();
  }
  // The mapping itself.
  std::span<std::byte> medium_bytes() const { return {data_, size_}; }
  bool is_landed() const { return landing_ != nullptr; }
  RegionMedium medium() const { return medium_; }
  // Whether the mapping of a writable file is of the page cache; else it is of
  // the medium itself, or anonymous.
  bool is_in_page_cache() const { return is_in_page_cache_; }
  bool writable() const { return writable_; }
  // Nobody will write to this anonymous region any more: HasWriter is false.
  void Freeze() { writable_ = false; }
  // Lets go of the lock of a writable file region. The bytes stay where they
  // are, and from here on are memory of this process, whoever still writes
  // there (RG1); what is not changed here may show what others write to the
  // file. Errors: Unavailable: the lock is kept.
  absl::Status GiveUp();
  // Looks whether the path still leads to the file of this region, whole, and
  // raises the alarm if it does not. Anonymous memory and devices are left
  // alone. Some microseconds. Not while it is given up.
  void CheckFile() const;
  // Whether it is a file that CheckFile looks at.
  bool is_watched() const { return watch_.is_watching(); }
  // Raised, its fences are to fail. Never null; outlives the region.
  const std::shared_ptr<RegionAlarm>& alarm() const { return alarm_; }
  // A sentence on what the operator should know of the medium, or empty.
  const std::string& warning() const { return warning_; }

  // As given; "(anonymous)" for anonymous memory.
  const std::string& path() const { return path_; }

  // To read what bytes() shows without mapping it; of no file where bytes() is
  // no regular file.
  FileView file() const;

  // True while some writer (of this process or another) has the file open.
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
  void Guard();  // the mapping
  void Watch();  // the path, which leads to the file
  static absl::StatusOr<Region> MapForWriting(const std::string& path,
                                              const std::string& open_path,
                                              int fd);
  void Release();

  std::unique_ptr<Region> landing_;  // what is seen instead; nullptr: nothing
  std::byte* data_ = nullptr;
  size_t size_ = 0;         // what the log uses
  size_t mapped_size_ = 0;  // what is mapped (a device may be larger)
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

// What a new region is to hold.
struct RegionContent {
  // Writes it into zeros, or onto a device, and persists it.
  absl::FunctionRef<absl::Status(Region&)> write;
  RegionUseFunction use_of;  // of what is at the path, or may be left there
  // Of zeros at its beginning by which a device is known to hold nothing.
  size_t fixed_bytes = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_REGION_H_
