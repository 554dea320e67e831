// SPDX-License-Identifier: Apache-2.0
#include "bench/local/floor.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "bench/local/clock.h"
#include "bench/local/line_stores.h"
#include "bench/local/region_file.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::bench {
namespace {

template <StoreLines Store>
class Floor final : public Candidate {
 public:
  Floor(std::string name, Region region, const Workload& workload)
      : name_(std::move(name)),
        region_(std::move(region)),
        source_(RecordLines(workload.payload_bytes), Line{}),
        records_(region_.bytes().size() / RecordBytes(workload.payload_bytes) /
                 static_cast<uint64_t>(workload.workers)),
        places_(workload.workers) {
    std::memset(source_.data(), 0x5a,
                kRecordHeaderBytes + workload.payload_bytes);
  }

  std::string name() const override { return name_; }

  absl::StatusOr<BatchResult> Run(int worker, uint64_t ops) override {
    const uint64_t lines = source_.size();
    Line* const ring = reinterpret_cast<Line*>(region_.bytes().data()) +
                       static_cast<uint64_t>(worker) * records_ * lines;
    uint64_t& next = places_[worker].next;
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) {
      Store(ring + next * lines, source_.data(), lines);
      Fence();
      if (++next == records_) next = 0;
    }
    result.append_ns = NowNanos() - start;
    return result;
  }

 private:
  struct alignas(kLineBytes) Place {
    uint64_t next = 0;
  };

  const std::string name_;
  const Region region_;
  std::vector<Line> source_;
  const uint64_t records_;     // that a worker's part holds
  std::vector<Place> places_;  // of each worker's next record
};

template <StoreLines Store>
MakeCandidate FloorBy(const char* name) {
  return [name](const Workload& workload)
             -> absl::StatusOr<std::unique_ptr<Candidate>> {
    ALPHEUS_ASSIGN_OR_RETURN(Region region, MakeScratchRegion(workload, name));
    return std::make_unique<Floor<Store>>(name, std::move(region), workload);
  };
}

}  // namespace

std::vector<MakeCandidate> Floors() {
  std::vector<MakeCandidate> floors = {FloorBy<StoreLinesNt16>("floor-nt16")};
  if (HasClwb()) floors.push_back(FloorBy<StoreLinesCached>("floor-clwb"));
  if (HasNt64()) floors.push_back(FloorBy<StoreLinesNt64>("floor-nt64"));
  return floors;
}

}  // namespace alpheus::bench
