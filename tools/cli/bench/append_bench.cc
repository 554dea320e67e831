// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench/append_bench.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "tools/cli/bench/medium_floor.h"
#include "tools/cli/io/scratch_file.h"

namespace alpheus::cli {
namespace {

// Turns of all runs; medians are taken over them.
constexpr int kTurns = 5;
// Between two looks at the clock, which takes some tens of nanoseconds.
constexpr uint64_t kChunk = 16;
// A full log that no cleaning helps is an error; other threads may fill what
// this one cleaned, so it tries often.
constexpr int kCleaningsMax = 1000;

double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Records assigned and not durable, at one moment: the durable LSN must not
// move between the two looks, or a thread that lost its core there would see
// what others did meanwhile.
uint64_t ExposedNow(const Log& log) {
  while (true) {
    const Lsn durable = log.durable_lsn();
    const Lsn next = log.next_lsn();
    if (log.durable_lsn() == durable) return next - durable - 1;
  }
}

// Work of one thread of a run.
struct Work {
  uint64_t records = 0;
  uint64_t cleanings = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  absl::Status status;
  LatencyHistogram latency_ns;
  LatencyHistogram exposure;
};

using Worker =
    std::function<absl::Status(int worker, int64_t end_ns, Work* work)>;

class Bench {
 public:
  static absl::StatusOr<std::unique_ptr<Bench>> Make(
      const AppendBenchOptions& options, const Clock& clock);

  Bench(const AppendBenchOptions& options, const Clock& clock,
        std::unique_ptr<ScratchFile> file, std::unique_ptr<Log> log,
        std::vector<std::unique_ptr<MediumFloor>> floors, RegionMedium medium)
      : options_(options),
        clock_(clock),
        file_(std::move(file)),
        log_(std::move(log)),
        floors_(std::move(floors)),
        payload_(options.payload_bytes, std::byte{0x5a}) {
    force_.frequency = options.frequency;
    result_.medium = medium;
  }

  absl::StatusOr<AppendBenchResult> Run();

 private:
  absl::Status TakeTurn(int64_t slice_ns);
  // Runs `worker` on all threads until the slice is over; records per second.
  absl::StatusOr<double> RunThreads(int64_t slice_ns, const Worker& worker);

  absl::Status PersistPlain(MediumFloor& floor, int worker, int64_t end_ns,
                            Work* work);
  absl::Status AppendUntimed(int64_t end_ns, Work* work);
  absl::Status AppendTimed(int64_t end_ns, Work* work);
  // Makes room in a full log. `last` is the thread's newest record.
  absl::Status Clean(Lsn last, Work* work);
  double TimeClock() const;

  const AppendBenchOptions options_;
  const Clock& clock_;
  // An open log's file must stay.
  const std::unique_ptr<ScratchFile> file_;
  const std::unique_ptr<Log> log_;
  // Floors, one for each kind of store.
  const std::vector<std::unique_ptr<MediumFloor>> floors_;
  const std::vector<std::byte> payload_;
  ForceOptions force_;
  AppendBenchResult result_;
  std::vector<double> rates_;
  std::vector<std::vector<double>> floor_rates_;  // [floors][turns]
};

absl::StatusOr<std::unique_ptr<Log>> MakeLog(const AppendBenchOptions& options,
                                             const ScratchFile& file) {
  ALPHEUS_RETURN_IF_ERROR(
      Log::Format({.path = file.path(), .region_bytes = options.region_bytes})
          .status());
  LogOptions open;
  open.path = file.path();
  open.exposure_records_max =
      std::max(open.exposure_records_max, 2 * options.frequency);
  return Log::Open(open);
}

absl::StatusOr<Region> MakeFloorRegion(const AppendBenchOptions& options) {
  const ScratchFile file(options.folder, "bench-floor");
  return Region::Create(file.path(), options.region_bytes);
}

absl::StatusOr<std::unique_ptr<Bench>> Bench::Make(
    const AppendBenchOptions& options, const Clock& clock) {
  auto file = std::make_unique<ScratchFile>(options.folder, "bench-log");
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> log, MakeLog(options, *file));
  if (options.payload_bytes > log->payload_bytes_max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "records of ", options.payload_bytes, " bytes: a region of ",
        options.region_bytes, " bytes takes at most ", log->payload_bytes_max(),
        "; name a larger one by --size"));
  }
  std::vector<std::unique_ptr<MediumFloor>> floors;
  ALPHEUS_ASSIGN_OR_RETURN(Region region, MakeFloorRegion(options));
  const RegionMedium medium = region.medium();
  floors.push_back(
      MakeMediumFloor(std::move(region), options.payload_bytes, false));
  if (medium == RegionMedium::kPersistentMemory) {
    ALPHEUS_ASSIGN_OR_RETURN(Region other, MakeFloorRegion(options));
    floors.push_back(
        MakeMediumFloor(std::move(other), options.payload_bytes, true));
  } else {
    const ScratchFile written(options.folder, "bench-write");
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<MediumFloor> floor,
        MakeWriteFloor(written.path(), options.region_bytes,
                       options.payload_bytes));
    floors.push_back(std::move(floor));
  }
  if (floors.front()->places() < static_cast<uint64_t>(options.threads)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.threads, " threads with records of ", options.payload_bytes,
        " bytes: a region of ", options.region_bytes,
        " bytes has no room for one record of each thread; give a larger "
        "--size"));
  }
  return std::make_unique<Bench>(options, clock, std::move(file),
                                 std::move(log), std::move(floors), medium);
}

absl::StatusOr<AppendBenchResult> Bench::Run() {
  floor_rates_.resize(floors_.size());
  const auto runs = static_cast<int64_t>(2 + floors_.size());
  const int64_t slice_ns = options_.duration_ns / (kTurns * runs);
  for (int turn = 0; turn < kTurns; ++turn) {
    ALPHEUS_RETURN_IF_ERROR(TakeTurn(slice_ns));
  }
  ALPHEUS_RETURN_IF_ERROR(log_->Close());
  result_.records_per_second = Median(rates_);
  for (size_t i = 0; i < floors_.size(); ++i) {
    const double rate = Median(floor_rates_[i]);
    if (rate <= result_.floor_records_per_second) continue;
    result_.floor_records_per_second = rate;
    result_.floor_way = floors_[i]->way();
  }
  result_.clock_ns = TimeClock();
  return result_;
}

absl::Status Bench::TakeTurn(int64_t slice_ns) {
  for (size_t i = 0; i < floors_.size(); ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const double rate,
        RunThreads(slice_ns, [&](int worker, int64_t end_ns, Work* work) {
          return PersistPlain(*floors_[i], worker, end_ns, work);
        }));
    floor_rates_[i].push_back(rate);
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const double rate,
      RunThreads(slice_ns, [this](int /*worker*/, int64_t end_ns, Work* work) {
        return AppendUntimed(end_ns, work);
      }));
  rates_.push_back(rate);
  return RunThreads(slice_ns,
                    [this](int /*worker*/, int64_t end_ns, Work* work) {
                      return AppendTimed(end_ns, work);
                    })
      .status();
}

absl::StatusOr<double> Bench::RunThreads(int64_t slice_ns,
                                         const Worker& worker) {
  std::vector<Work> works(options_.threads);
  std::barrier<> start(options_.threads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options_.threads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        works[i].start_ns = clock_.NowNanos();
        works[i].status = worker(i, works[i].start_ns + slice_ns, &works[i]);
        works[i].end_ns = clock_.NowNanos();
      });
    }
  }
  uint64_t records = 0;
  int64_t first = works[0].start_ns;
  int64_t last = works[0].end_ns;
  for (const Work& work : works) {
    ALPHEUS_RETURN_IF_ERROR(work.status);
    records += work.records;
    first = std::min(first, work.start_ns);
    last = std::max(last, work.end_ns);
    result_.cleanings += work.cleanings;
    result_.latency_ns.Add(work.latency_ns);
    result_.exposure.Add(work.exposure);
  }
  return static_cast<double>(records) * 1e9 /
         static_cast<double>(std::max<int64_t>(1, last - first));
}

// Each thread goes through a part of the region of its own.
absl::Status Bench::PersistPlain(MediumFloor& floor, int worker, int64_t end_ns,
                                 Work* work) {
  const uint64_t part =
      floor.places() / static_cast<uint64_t>(options_.threads);
  const uint64_t first = part * static_cast<uint64_t>(worker);
  do {
    for (uint64_t i = 0; i < kChunk; ++i, ++work->records) {
      ALPHEUS_RETURN_IF_ERROR(floor.Persist(first + work->records % part));
    }
  } while (clock_.NowNanos() < end_ns);
  return absl::OkStatus();
}

absl::Status Bench::AppendUntimed(int64_t end_ns, Work* work) {
  Lsn last;
  do {
    for (uint64_t i = 0; i < kChunk; ++i, ++work->records) {
      absl::StatusOr<Lsn> lsn = log_->Append(payload_, force_);
      for (int tries = 0;
           absl::IsResourceExhausted(lsn.status()) && tries < kCleaningsMax;
           ++tries) {
        ALPHEUS_RETURN_IF_ERROR(Clean(last, work));
        lsn = log_->Append(payload_, force_);
      }
      ALPHEUS_RETURN_IF_ERROR(lsn.status());
      last = *lsn;
    }
  } while (clock_.NowNanos() < end_ns);
  return absl::OkStatus();
}

absl::Status Bench::AppendTimed(int64_t end_ns, Work* work) {
  Lsn last;
  int tries = 0;
  int64_t now = clock_.NowNanos();
  while (now < end_ns) {
    const absl::StatusOr<Lsn> lsn = log_->Append(payload_, force_);
    const int64_t done = clock_.NowNanos();
    if (lsn.ok()) {
      work->latency_ns.Add(static_cast<uint64_t>(done - now));
      work->exposure.Add(ExposedNow(*log_));
      ++work->records;
      last = *lsn;
      tries = 0;
    } else {
      if (!absl::IsResourceExhausted(lsn.status()) || ++tries > kCleaningsMax) {
        return lsn.status();
      }
      ALPHEUS_RETURN_IF_ERROR(Clean(last, work));
    }
    now = clock_.NowNanos();
  }
  return absl::OkStatus();
}

absl::Status Bench::Clean(Lsn last, Work* work) {
  ++work->cleanings;
  // With a frequency, the records that fill the log may not be durable yet.
  if (last > log_->durable_lsn()) {
    ALPHEUS_RETURN_IF_ERROR(log_->Force(last));
  }
  return log_->CleanupThrough(log_->durable_lsn());
}

double Bench::TimeClock() const {
  constexpr int kCalls = 1000;
  const int64_t start = clock_.NowNanos();
  for (int i = 1; i < kCalls; ++i) clock_.NowNanos();
  return static_cast<double>(clock_.NowNanos() - start) / kCalls;
}

}  // namespace

absl::StatusOr<AppendBenchResult> RunAppendBench(
    const AppendBenchOptions& options, const Clock& clock) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Bench> bench,
                           Bench::Make(options, clock));
  return bench->Run();
}

}  // namespace alpheus::cli
