// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/floor.h"

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "bench/harness/clock.h"
#include "bench/harness/line_stores.h"
#include "bench/harness/region_file.h"
#include "bench/harness/source.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::bench {
namespace {

template <StoreLines Store>
class Floor final : public Candidate {
 public:
  Floor(std::string name, std::shared_ptr<const Region> region,
        const Workload& workload)
      : name_(std::move(name)),
        region_(std::move(region)),
        source_(SourceBytes(RecordBytes(workload.payload_bytes))),
        records_(region_->bytes().size() / RecordBytes(workload.payload_bytes) /
                 static_cast<uint64_t>(workload.workers)),
        places_(workload.workers) {}

  std::string name() const override { return name_; }

  absl::StatusOr<BatchResult> Run(int worker, uint64_t ops) override {
    const uint64_t lines = source_.size() / kLineBytes;
    Line* const ring = reinterpret_cast<Line*>(region_->bytes().data()) +
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
  const std::shared_ptr<const Region> region_;
  const std::span<const std::byte> source_;
  const uint64_t records_;     // that a worker's part holds
  std::vector<Place> places_;  // of each worker's next record
};

// A region of its own for each candidate, if none is given.
template <StoreLines Store>
MakeCandidate FloorBy(const char* name,
                      const std::shared_ptr<const Region>& region) {
  return [name, region](const Workload& workload)
             -> absl::StatusOr<std::unique_ptr<Candidate>> {
    std::shared_ptr<const Region> its = region;
    if (its == nullptr) {
      ALPHEUS_ASSIGN_OR_RETURN(Region made, MakeScratchRegion(workload, name));
      its = std::make_shared<const Region>(std::move(made));
    }
    return std::make_unique<Floor<Store>>(name, std::move(its), workload);
  };
}

}  // namespace

std::vector<MakeCandidate> Floors() { return FloorsIn(nullptr); }

std::vector<MakeCandidate> FloorsIn(
    const std::shared_ptr<const Region>& region) {
  std::vector<MakeCandidate> floors = {
      FloorBy<StoreLinesNt16>("floor-nt16", region)};
  if (HasClwb()) {
    floors.push_back(FloorBy<StoreLinesCached>("floor-clwb", region));
  }
  if (HasNt64()) {
    floors.push_back(FloorBy<StoreLinesNt64>("floor-nt64", region));
  }
  return floors;
}

}  // namespace alpheus::bench
