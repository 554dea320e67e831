// SPDX-License-Identifier: Apache-2.0
// From the file of a log that was not closed to the last record visited, all by
// turns with the parts and with one checksum pass over the same records.
//
// An image of the file is taken while its log is open, so that it looks as
// after a crash. Each turn works on a fresh copy, since opening changes it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "bench/harness/checksum_pass.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/harness/line_stores.h"
#include "bench/harness/region_file.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/candidates/flex_log.h"
#include "bench/local/candidates/pmemlog_candidate.h"
#include "bench/local/candidates/zero_log.h"
#include "bench/local/scenarios/log_image.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"

namespace alpheus::bench {
namespace {

constexpr uint64_t kMainSize = 1024;  // of the records of Figure 7
// Metric: ns a page, not ms.
constexpr const char* kTouch = "touch";

absl::Status CheckCount(const std::string& who, uint64_t found,
                        uint64_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(who, " visited ", found, " records instead of ", expected));
}

// A file in memory, every page mapped, by the thread that asks for it; Alpheus
// itself maps from a second thread while it reads (log/pmem/populator.h).
class PlainMapping {
 public:
  static absl::StatusOr<PlainMapping> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return absl::UnavailableError(absl::StrCat(path, ": open"));
    std::error_code error;
    const size_t bytes = std::filesystem::file_size(path, error);
    void* data = error ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ,
                              MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED) {
      return absl::UnavailableError(absl::StrCat(path, ": mmap"));
    }
    return PlainMapping({static_cast<const std::byte*>(data), bytes});
  }

  PlainMapping(PlainMapping&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})) {}
  PlainMapping& operator=(PlainMapping&& other) = delete;
  ~PlainMapping() {
    if (bytes_.empty()) return;
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit PlainMapping(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Mean time of the first store to each page of the file, in ns: what a process
// pays that maps a file and uses it, as a log does. Changes the file.
absl::StatusOr<double> TouchNanos(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return absl::UnavailableError(absl::StrCat(path, ": open"));
  std::error_code error;
  const size_t bytes = std::filesystem::file_size(path, error);
  void* data =
      error ? MAP_FAILED
            : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (data == MAP_FAILED) {
    return absl::UnavailableError(absl::StrCat(path, ": mmap"));
  }
  auto* const first = static_cast<volatile std::byte*>(data);
  const int64_t start = NowNanos();
  for (size_t at = 0; at < bytes; at += kPageBytes) first[at] = std::byte{1};
  const int64_t end = NowNanos();
  munmap(data, bytes);
  return static_cast<double>(end - start) * kPageBytes /
         static_cast<double>(bytes);
}

// A candidate that recovers; its metrics, in ms unless stated, one sample per
// turn.
class Recoverer {
 public:
  Recoverer(std::string name, const Workload& workload)
      : name_(std::move(name)),
        workload_(workload),
        image_(RegionFilePath(workload, name_.c_str())) {}
  virtual ~Recoverer() = default;

  // Makes the image.
  virtual absl::Status Write() = 0;
  // On a fresh copy of the image.
  virtual absl::Status Recover(const std::string& path) = 0;

  absl::Status Turn() {
    const ScratchFile copy(RegionFilePath(workload_, "copy"));
    ALPHEUS_RETURN_IF_ERROR(CopyFile(image_.path(), copy.path()));
    return Recover(copy.path());
  }

  void Report(std::vector<Measurement>* measurements) const {
    for (const auto& [metric, samples] : samples_) {
      measurements->push_back(
          {.scenario = "recovery",
           .candidate = name_,
           .metric = metric,
           .unit = metric == kTouch ? "ns" : "ms",
           .parameters = {{"bytes", workload_.payload_bytes},
                          {"log_mib", workload_.ring_bytes / kMiB}},
           .samples = samples,
           .details = {{"records", static_cast<double>(records_)}}});
    }
  }

 protected:
  void Sample(const std::string& metric, int64_t ns) {
    samples_[metric].push_back(static_cast<double>(ns) / 1e6);
  }
  void SampleTouch(double ns) { samples_[kTouch].push_back(ns); }
  const std::string& image() const { return image_.path(); }
  const Workload& workload() const { return workload_; }
  std::vector<std::byte> payload() const {
    return std::vector<std::byte>(workload_.payload_bytes, std::byte{0x5a});
  }

  const std::string name_;
  uint64_t records_ = 0;  // in the image

 private:
  const Workload workload_;
  const ScratchFile image_;
  std::map<std::string, std::vector<double>> samples_;
};

class AlpheusRecoverer final : public Recoverer {
 public:
  explicit AlpheusRecoverer(const Workload& workload)
      : Recoverer("alpheus", workload) {}

  absl::Status Write() override {
    ALPHEUS_ASSIGN_OR_RETURN(records_, WriteLogImage(workload(), image()));
    return absl::OkStatus();
  }

  absl::Status Recover(const std::string& path) override {
    LogOptions options;
    options.path = path;
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                             Log::Open(options));
    const int64_t opened = NowNanos();
    uint64_t count = 0;
    ALPHEUS_RETURN_IF_ERROR(
        log->ForEachRecovered([&count](const RecoveredRecord&) {
          ++count;
          return absl::OkStatus();
        }));
    const int64_t end = NowNanos();
    Sample("open", opened - start);
    Sample("iteration", end - opened);
    Sample("total", end - start);
    return CheckCount(name_, count, records_);
  }
};

// The image of Alpheus once more: what its recovery is made of, done apart by
// the least code that can do it.
class PartsRecoverer final : public Recoverer {
 public:
  explicit PartsRecoverer(const Workload& workload)
      : Recoverer("parts", workload) {}

  absl::Status Write() override {
    ALPHEUS_ASSIGN_OR_RETURN(records_, WriteLogImage(workload(), image()));
    return absl::OkStatus();
  }

  absl::Status Recover(const std::string& path) override {
    ALPHEUS_RETURN_IF_ERROR(ReadBesideNobody(path));
    ALPHEUS_ASSIGN_OR_RETURN(
        const Layout layout,
        Layout::ForRing(workload().ring_bytes, kEpochTableCapacity));
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const PlainMapping file, PlainMapping::Open(path));
    const int64_t mapped = NowNanos();
    const std::span<const std::byte> ring =
        file.bytes().subspan(layout.ring_offset, layout.ring_capacity);
    const PassResult cold = ChecksumPass(ring);
    const int64_t cold_end = NowNanos();
    const PassResult warm = ChecksumPass(ring);
    const int64_t warm_end = NowNanos();
    FlushRange(ring.data(), ring.size());
    Fence();
    const int64_t flushed = NowNanos();
    Sample("map", mapped - start);
    // Recovery, too, starts from a file: mapping counts.
    Sample("pass from the file", cold_end - start);
    Sample("pass", warm_end - cold_end);
    Sample("flush", flushed - warm_end);
    ALPHEUS_ASSIGN_OR_RETURN(const double touch_ns, TouchNanos(path));
    SampleTouch(touch_ns);
    ALPHEUS_RETURN_IF_ERROR(CheckCount("first pass", cold.records, records_));
    return CheckCount("second pass", warm.records, records_);
  }

 private:
  absl::Status ReadBesideNobody(const std::string& path) {
    uint64_t count = 0;
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                             LogReader::Open(path));
    ALPHEUS_RETURN_IF_ERROR(reader->ForEach([&count](const ReaderRecord&) {
      ++count;
      return absl::OkStatus();
    }));
    Sample("LogReader", NowNanos() - start);
    return CheckCount("LogReader", count, records_);
  }
};

template <class LogType>
class BaselineRecoverer final : public Recoverer {
 public:
  explicit BaselineRecoverer(const Workload& workload)
      : Recoverer(LogType::kName, workload) {}

  absl::Status Write() override {
    ALPHEUS_ASSIGN_OR_RETURN(const Region region,
                             Region::Create(image(), workload().ring_bytes));
    LogType log(region.bytes());
    while (log.Append(payload_)) ++records_;
    return absl::OkStatus();
  }

  absl::Status Recover(const std::string& path) override {
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const Region region, Region::OpenForWriting(path));
    uint64_t count = 0;
    ALPHEUS_RETURN_IF_ERROR(
        LogType::Recover(region.bytes(), [&count](std::span<const std::byte>) {
          ++count;
        }).status());
    Sample("total", NowNanos() - start);
    return CheckCount(name_, count, records_);
  }

 private:
  const std::vector<std::byte> payload_ = payload();
};

class PmemlogRecoverer final : public Recoverer {
 public:
  explicit PmemlogRecoverer(const Workload& workload)
      : Recoverer("libpmemlog", workload) {}

  absl::Status Write() override {
    ALPHEUS_ASSIGN_OR_RETURN(
        PmemlogPool pool, PmemlogPool::Create(image(), workload().ring_bytes));
    const std::vector<std::byte> record = payload();
    while (pool.Append(record)) ++records_;
    return absl::OkStatus();
  }

  absl::Status Recover(const std::string& path) override {
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const PmemlogPool pool, PmemlogPool::Open(path));
    const uint64_t count = pool.Walk(workload().payload_bytes);
    Sample("total", NowNanos() - start);
    return CheckCount(name_, count, records_);
  }
};

absl::Status MeasureOne(const Settings& settings, uint64_t log_mib,
                        uint64_t bytes, Report* report) {
  const Workload workload{.folder = settings.folder,
                          .ring_bytes = log_mib * kMiB,
                          .payload_bytes = bytes};
  std::vector<std::unique_ptr<Recoverer>> all;
  all.push_back(std::make_unique<PartsRecoverer>(workload));
  all.push_back(std::make_unique<AlpheusRecoverer>(workload));
  all.push_back(std::make_unique<BaselineRecoverer<FlexLog>>(workload));
  all.push_back(std::make_unique<BaselineRecoverer<ZeroLog>>(workload));
  all.push_back(std::make_unique<PmemlogRecoverer>(workload));
  for (const auto& recoverer : all) {
    ALPHEUS_RETURN_IF_ERROR(recoverer->Write());
  }
  ALPHEUS_RETURN_IF_ERROR(Interleave(settings.rounds, all.size(),
                                     [&](size_t i) { return all[i]->Turn(); }));
  for (const auto& recoverer : all) recoverer->Report(&report->measurements);
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRecovery(const Settings& settings, Report* report) {
  for (const uint64_t log_mib : settings.recovery_mib) {
    ALPHEUS_RETURN_IF_ERROR(MeasureOne(settings, log_mib, kMainSize, report));
  }
  for (const uint64_t bytes : settings.recovery_sizes) {
    if (bytes == kMainSize) continue;
    ALPHEUS_RETURN_IF_ERROR(
        MeasureOne(settings, settings.recovery_mib.back(), bytes, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
