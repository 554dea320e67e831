// SPDX-License-Identifier: Apache-2.0
#include "bench/local/floor.h"

#include <immintrin.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/local/region_file.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "log/pmem/region.h"

namespace alpheus::bench {
namespace {

struct alignas(kLineBytes) Line {
  std::byte bytes[kLineBytes];
};

// Each stores `lines` lines and fences. Requires: both addresses on a line.

__attribute__((target("clwb"))) void PersistCached(Line* to, const Line* from,
                                                   uint64_t lines) {
  std::memcpy(to, from, lines * sizeof(Line));
  for (uint64_t i = 0; i < lines; ++i) _mm_clwb(to + i);
  _mm_sfence();
}

void PersistNt16(Line* to, const Line* from, uint64_t lines) {
  for (uint64_t i = 0; i < lines; ++i) {
    auto* target = reinterpret_cast<__m128i*>(to + i);
    const auto* source = reinterpret_cast<const __m128i*>(from + i);
    for (int k = 0; k < 4; ++k) {
      _mm_stream_si128(target + k, _mm_load_si128(source + k));
    }
  }
  _mm_sfence();
}

__attribute__((target("avx512f"))) void PersistNt64(Line* to, const Line* from,
                                                    uint64_t lines) {
  for (uint64_t i = 0; i < lines; ++i) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i),
                        _mm512_load_si512(from + i));
  }
  _mm_sfence();
}

template <auto Persist>
class Floor final : public Candidate {
 public:
  Floor(std::string name, Region region, uint64_t payload_bytes)
      : name_(std::move(name)),
        region_(std::move(region)),
        source_(RecordLines(payload_bytes), Line{}),
        records_(region_.bytes().size() / RecordBytes(payload_bytes)) {
    std::memset(source_.data(), 0x5a, kRecordHeaderBytes + payload_bytes);
  }

  std::string name() const override { return name_; }

  absl::StatusOr<BatchResult> Run(uint64_t ops) override {
    auto* const ring = reinterpret_cast<Line*>(region_.bytes().data());
    const uint64_t lines = source_.size();
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) {
      Persist(ring + next_ * lines, source_.data(), lines);
      if (++next_ == records_) next_ = 0;
    }
    result.append_ns = NowNanos() - start;
    return result;
  }

 private:
  const std::string name_;
  const Region region_;
  std::vector<Line> source_;
  const uint64_t records_;  // that the region holds
  uint64_t next_ = 0;       // place of the next one
};

template <auto Persist>
absl::Status AddFloor(const char* name, const Workload& workload,
                      std::vector<std::unique_ptr<Candidate>>* floors) {
  const std::string path = RegionFilePath(workload, name);
  ALPHEUS_ASSIGN_OR_RETURN(Region region,
                           Region::Create(path, workload.ring_bytes));
  RemoveRegionFile(path);
  if (region.medium() != RegionMedium::kPersistentMemory) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": libpmem does not take it for persistent memory, so the logs "
        "would call msync; name a folder on tmpfs or DAX by --dir"));
  }
  floors->push_back(std::make_unique<Floor<Persist>>(name, std::move(region),
                                                     workload.payload_bytes));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Candidate>>> MakeFloors(
    const Workload& workload) {
  std::vector<std::unique_ptr<Candidate>> floors;
  ALPHEUS_RETURN_IF_ERROR(
      AddFloor<PersistNt16>("floor-nt16", workload, &floors));
  if (__builtin_cpu_supports("clwb") != 0) {
    ALPHEUS_RETURN_IF_ERROR(
        AddFloor<PersistCached>("floor-clwb", workload, &floors));
  }
  if (__builtin_cpu_supports("avx512f") != 0) {
    ALPHEUS_RETURN_IF_ERROR(
        AddFloor<PersistNt64>("floor-nt64", workload, &floors));
  }
  return floors;
}

}  // namespace alpheus::bench
