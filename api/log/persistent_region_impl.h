// SPDX-License-Identifier: Apache-2.0
// persistent_region_impl: the mapping behind a public PersistentRegion, and the
// persistence backend of its medium.
//
// Thread safety: as PersistentRegion.
#ifndef ALPHEUS_API_LOG_PERSISTENT_REGION_IMPL_H_
#define ALPHEUS_API_LOG_PERSISTENT_REGION_IMPL_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "alpheus/persistent_region.h"
#include "log/base/status_macros.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"

namespace alpheus {

// Errors: OutOfRange.
inline absl::Status CheckRangeOfRegion(size_t offset, size_t size,
                                       size_t region_bytes) {
  if (offset <= region_bytes && size <= region_bytes - offset) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(size, " bytes at offset ", offset,
                                            " lie outside a region of ",
                                            region_bytes, " bytes"));
}

class PersistentRegion::Impl {
 public:
  explicit Impl(Region region) : region_(std::move(region)) {
    if (region_.medium() == RegionMedium::kFile) {
      msync_ = std::make_unique<MsyncPersistence>(
          region_.path(), MsyncPersistence::SyncPages, region_.alarm());
      return;
    }
    LibpmemPersistence::Options options;
    options.auto_flush = LibpmemPersistence::DetectAutoFlush();
    options.alarm = region_.alarm();
    libpmem_ = std::make_unique<LibpmemPersistence>(options);
  }

  static Impl& Of(PersistentRegion& region) { return *region.impl_; }

  std::span<std::byte> bytes() const { return region_.bytes(); }
  bool is_file() const { return msync_ != nullptr; }

  // Calls `use` with the backend of this medium.
  template <class Use>
  auto WithBackend(Use use) {
    return msync_ != nullptr ? use(*msync_) : use(*libpmem_);
  }

  absl::Status Persist(size_t offset, size_t size) {
    ALPHEUS_RETURN_IF_ERROR(CheckRangeOfRegion(offset, size, bytes().size()));
    const std::byte* address = bytes().data() + offset;
    return WithBackend([&](auto& pmem) {
      return alpheus::Persist(pmem, address, size) ? absl::OkStatus()
                                                   : pmem.Error();
    });
  }

 private:
  Region region_;
  std::unique_ptr<MsyncPersistence> msync_;  // one of the two is set
  std::unique_ptr<LibpmemPersistence> libpmem_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_PERSISTENT_REGION_IMPL_H_
