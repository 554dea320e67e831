// SPDX-License-Identifier: Apache-2.0
// persistent_region: persistent memory for the two primitives below the log
// (integrity.h, atomicity.h).
//
// Idea: a mapped file, DAX device or anonymous memory, with the way to persist
// it that its medium needs: CPU instructions or msync.
//
// Thread safety: all members may be called concurrently; a Persist covers the
// range that it names.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_PERSISTENT_REGION_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_PERSISTENT_REGION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus {

struct AtomicPlace;

class PersistentRegion {
 public:
  // Internal.
  class Impl;

  // Creates a file of zero bytes, all blocks allocated, and takes its lock.
  // Errors: AlreadyExists; ResourceExhausted (file system full; nothing is
  // left behind); InvalidArgument; NotFound, PermissionDenied (folder);
  // Unavailable.
  static absl::StatusOr<PersistentRegion> Create(const std::string& path,
                                                 size_t bytes);
  // Opens an existing file or device and takes its lock.
  // Errors: NotFound; FailedPrecondition (another writer has it open); DataLoss
  // (empty file); PermissionDenied; InvalidArgument (path); ResourceExhausted
  // (holes on a full file system); Unavailable.
  static absl::StatusOr<PersistentRegion> Open(const std::string& path);
  // Makes a region in memory of this process, which is gone with it.
  // Errors: InvalidArgument (no bytes); Unavailable.
  static absl::StatusOr<PersistentRegion> Anonymous(size_t bytes);

  PersistentRegion(PersistentRegion&&) noexcept;
  PersistentRegion& operator=(PersistentRegion&&) noexcept;
  ~PersistentRegion();

  // Returns the memory, page-aligned, valid as long as the region.
  std::span<std::byte> bytes();
  std::span<const std::byte> bytes() const;

  // Persists everything that was stored to bytes()[offset, offset + size)
  // before the call.
  // Errors: OutOfRange; Unavailable (medium: what is persistent is unknown).
  absl::Status Persist(size_t offset, size_t size);

 private:
  friend absl::Status AtomicWrite(PersistentRegion& region,
                                  const AtomicPlace& place,
                                  std::span<const std::byte> value);
  explicit PersistentRegion(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_PERSISTENT_REGION_H_
