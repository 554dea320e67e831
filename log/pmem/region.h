// SPDX-License-Identifier: Apache-2.0
// region: the mapped memory that holds one replica of a log, and its lock.
//
// Idea: a region is an fsdax file, a device-DAX, a plain file or anonymous
// memory; everything above sees only bytes and `medium`. A file region is
// opened by one writer at a time (an open-file-description lock, gone with the
// process) and by any number of readers, which take no lock.
//
// Invariants:
//   R1. While a writable Region exists, no other process and no other Region
//       of this process has the same file open for writing.
//   R2. Every byte of a writable file region has its block allocated, so that
//       a full file system is met when formatting, never by a store.
//   R3. The file of a landed region changes only by what its bytes() are copied
//       there for (landing_persistence.h); readers see nothing else.
// Thread safety: const members concurrently; the bytes are the users' affair.
// References: libpmem(7), fcntl(2) F_OFD_SETLK.
#ifndef ALPHEUS_LOG_PMEM_REGION_H_
#define ALPHEUS_LOG_PMEM_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/pmem/file_view.h"

namespace alpheus {

enum class RegionMedium {
  kPersistentMemory,  // DAX: flushed by CPU instructions
  kFile,              // page cache: flushed by msync
  kAnonymous,         // memory of this process: gone with it
};

// "pmem", "file" or "anonymous".
const char* RegionMediumName(RegionMedium medium);

class Region {
 public:
  // Creates a file of `bytes` zero bytes with all blocks allocated, durable in
  // its directory, and opens it for writing. A device-DAX that exists is taken
  // as it is when `bytes` is 0 or not larger than the device.
  // Errors: AlreadyExists; ResourceExhausted (file system full: the file is
  // removed again); InvalidArgument (bytes); Unavailable (other system error);
  // FailedPrecondition (device in use by another writer).
  static absl::StatusOr<Region> Create(const std::string& path, size_t bytes);

  // Opens an existing file or device for writing and takes its lock.
  // Errors: NotFound; FailedPrecondition when another writer has it open;
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
  bool writable() const { return writable_; }
  // Nobody will write to this anonymous region any more: HasWriter is false.
  void Freeze() { writable_ = false; }
  // Lets go of the lock of a writable file region. The bytes stay where they
  // are, and from here on are memory of this process, whoever still writes
  // there (R1); what is not changed here may show what others write to the
  // file. Errors: Unavailable: the lock is kept.
  absl::Status GiveUp();
  // As given; "(anonymous)" for anonymous memory.
  const std::string& path() const { return path_; }

  // To read what bytes() shows without mapping it; of no file where bytes() is
  // no regular file.
  FileView file() const;

  // True while some writer (of this process or another) has the file open.
  bool HasWriter() const;

 private:
  Region() = default;
  static absl::StatusOr<Region> MapForWriting(const std::string& path, int fd);
  void Release();

  std::unique_ptr<Region> landing_;  // what is seen instead; nullptr: nothing
  std::byte* data_ = nullptr;
  size_t size_ = 0;         // what the log uses
  size_t mapped_size_ = 0;  // what is mapped (a device may be larger)
  RegionMedium medium_ = RegionMedium::kAnonymous;
  bool writable_ = false;
  bool mapped_by_libpmem_ = false;
  int fd_ = -1;  // holds the lock while writable
  std::string path_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_REGION_H_
