// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/medium_floor.h"

#include <string>
#include <utility>

#include "log/format/record.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"

namespace alpheus::cli {
namespace {

template <Persistence P>
class Floor final : public MediumFloor {
 public:
  // `argument` is what P is made of.
  template <class Argument>
  Floor(Region region, Argument argument, uint64_t payload_bytes,
        bool past_cache)
      : region_(std::move(region)),
        pmem_(std::move(argument)),
        source_(RecordBytes(payload_bytes), std::byte{0x5a}),
        past_cache_(past_cache) {}

  uint64_t places() const override {
    return region_.bytes().size() / source_.size();
  }

  absl::Status Persist(uint64_t place) override {
    std::byte* const to = region_.bytes().data() + place * source_.size();
    if (past_cache_) {
      pmem_.CopyLinesNt(to, source_.data(), source_.size() / kLineBytes);
    } else {
      pmem_.Copy(to, source_.data(), source_.size());
      pmem_.Flush(to, source_.size());
    }
    if (pmem_.Fence()) return absl::OkStatus();
    return pmem_.Error();
  }

 private:
  const Region region_;
  P pmem_;
  const std::vector<std::byte> source_;
  const bool past_cache_;
};

}  // namespace

std::unique_ptr<MediumFloor> MakeMediumFloor(Region region,
                                             uint64_t payload_bytes,
                                             bool past_cache) {
  if (region.medium() == RegionMedium::kFile) {
    std::string path = region.path();
    return std::make_unique<Floor<MsyncPersistence>>(
        std::move(region), std::move(path), payload_bytes, false);
  }
  const LibpmemPersistence::Options options{
      .auto_flush = LibpmemPersistence::DetectAutoFlush()};
  return std::make_unique<Floor<LibpmemPersistence>>(std::move(region), options,
                                                     payload_bytes, past_cache);
}

}  // namespace alpheus::cli
