// SPDX-License-Identifier: Apache-2.0
// Where the time of one append of 1 KiB goes. Every stage of every record is
// timed by the processor's cycle counter; the sample of a round is the mean
// of the middle half of its records, less what an empty stage takes. The stages
// of libpmemlog can't be seen from outside: its copy is timed apart, the rest
// is what its append takes beyond.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/harness/line_stores.h"
#include "bench/harness/region_file.h"
#include "bench/harness/samples.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/candidates/flex_log.h"
#include "bench/local/candidates/pmemlog_candidate.h"
#include "bench/local/candidates/zero_log.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"
#include "log/format/checksum.h"
#include "log/format/record.h"

namespace alpheus::bench {
namespace {

constexpr uint64_t kStagedBytes = 1024;

using Payload = std::vector<std::byte>;

// Ticks that an empty stage takes.
struct Overhead {
  double plain = 0;
  double persisted = 0;
};

// The stages of one candidate, in order, and how long each took.
class StageClock {
 public:
  explicit StageClock(std::vector<std::string> stages)
      : stages_(std::move(stages)),
        persisted_(stages_.size()),
        ticks_(stages_.size()) {}

  void Begin() {
    stage_ = 0;
    last_ = Ticks();
  }
  // Ends the stage that began last, its stores perhaps still on their way.
  void Next() { End(Ticks()); }
  // Ends it when they have arrived; for stages that end with a fence, which
  // lets the thread go on and only makes its next stores wait.
  void NextPersisted() { End(TicksWhenStored(), true); }

  void DropRound() {
    for (std::vector<double>& ticks : ticks_) ticks.clear();
  }
  // Adds the medians since the last call to the samples.
  void EndRound(const Overhead& overhead, double ticks_per_nano) {
    samples_.resize(stages_.size());
    for (size_t i = 0; i < stages_.size(); ++i) {
      const double empty = persisted_[i] ? overhead.persisted : overhead.plain;
      samples_[i].push_back(std::max(0.0, MiddleMean(ticks_[i]) - empty) /
                            ticks_per_nano);
      ticks_[i].clear();
    }
  }

  void Report(const std::string& candidate,
              std::vector<Measurement>* measurements) const {
    for (size_t i = 0; i < stages_.size(); ++i) {
      measurements->push_back({.scenario = "stages",
                               .candidate = candidate,
                               .metric = stages_[i],
                               .unit = "ns",
                               .parameters = {{"bytes", kStagedBytes}},
                               .samples = samples_[i],
                               .details = {}});
    }
  }

 private:
  void End(uint64_t now, bool persisted = false) {
    persisted_[stage_] = persisted;
    ticks_[stage_++].push_back(static_cast<double>(now - last_));
    last_ = Ticks();
  }

  const std::vector<std::string> stages_;
  std::vector<bool> persisted_;  // which stages end with NextPersisted
  std::vector<std::vector<double>> ticks_;    // ticks_[stages][records]
  std::vector<std::vector<double>> samples_;  // ns, samples_[stages][rounds]
  size_t stage_ = 0;
  uint64_t last_ = 0;
};

// A log whose appends are taken apart.
class Staged {
 public:
  Staged(std::string name, std::vector<std::string> stages)
      : name(std::move(name)), clock(std::move(stages)) {}
  virtual ~Staged() = default;
  virtual absl::Status AppendOne() = 0;

  const std::string name;
  StageClock clock;
  const Payload payload = Payload(kStagedBytes, std::byte{0x5a});
};

class StagedAlpheus final : public Staged {
 public:
  explicit StagedAlpheus(std::unique_ptr<Log> log)
      : Staged("alpheus", {"reserve", "copy", "complete", "force"}),
        log_(std::move(log)) {}

  absl::Status AppendOne() override {
    clock.Begin();
    absl::StatusOr<Reservation> record = log_->Reserve(kStagedBytes);
    if (absl::IsResourceExhausted(record.status())) {
      ALPHEUS_RETURN_IF_ERROR(log_->CleanupThrough(log_->durable_lsn()));
      clock.Begin();
      record = log_->Reserve(kStagedBytes);
    }
    ALPHEUS_RETURN_IF_ERROR(record.status());
    clock.Next();
    ALPHEUS_RETURN_IF_ERROR(log_->Copy(*record, 0, payload));
    clock.Next();
    ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, log_->Complete(*std::move(record)));
    clock.Next();
    ALPHEUS_RETURN_IF_ERROR(log_->Force(lsn));
    clock.NextPersisted();
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<Log> log_;
};

class StagedAlpheusAppend final : public Staged {
 public:
  explicit StagedAlpheusAppend(std::unique_ptr<Log> log)
      : Staged("alpheus", {"append"}), log_(std::move(log)) {}

  absl::Status AppendOne() override {
    clock.Begin();
    absl::Status appended = log_->Append(payload).status();
    if (absl::IsResourceExhausted(appended)) {
      ALPHEUS_RETURN_IF_ERROR(log_->CleanupThrough(log_->durable_lsn()));
      clock.Begin();
      appended = log_->Append(payload).status();
    }
    clock.NextPersisted();
    return appended;
  }

 private:
  const std::unique_ptr<Log> log_;
};

// What Complete and the integrity of the others spend on the payload.
class StagedChecksum final : public Staged {
 public:
  StagedChecksum() : Staged("alpheus", {"checksum alone"}) {}

  absl::Status AppendOne() override {
    clock.Begin();
    sum_ = Crc32c(kCrcStart ^ sum_, payload);
    // Waited for, as the store of the header waits for it.
    asm volatile("" : : "r"(sum_) : "memory");
    clock.Next();
    return absl::OkStatus();
  }

 private:
  uint32_t sum_ = 0;
};

class StagedFlex final : public Staged {
 public:
  explicit StagedFlex(Region region)
      : Staged("flex", {"checksum", "copy header", "persist header",
                        "copy payload", "persist payload", "persist tail"}),
        region_(std::move(region)),
        log_(region_.bytes()) {}

  absl::Status AppendOne() override {
    if (!log_.HasRoom(kStagedBytes)) log_.Clear();
    clock.Begin();
    const FlexLog::Header header = FlexLog::Seal(payload);
    clock.Next();
    log_.StoreHeader(header);
    clock.Next();
    Fence();
    clock.NextPersisted();
    log_.StorePayload(payload);
    clock.Next();
    Fence();
    clock.NextPersisted();
    log_.PersistTail();
    clock.NextPersisted();
    return absl::OkStatus();
  }

 private:
  const Region region_;
  FlexLog log_;
};

class StagedZero final : public Staged {
 public:
  explicit StagedZero(Region region)
      : Staged("zero-init", {"count ones", "copy", "persist"}),
        region_(std::move(region)),
        log_(region_.bytes()) {}

  absl::Status AppendOne() override {
    if (!log_.HasRoom(kStagedBytes)) log_.Clear();
    clock.Begin();
    const ZeroLog::Header header = log_.Seal(payload);
    clock.Next();
    log_.Store(header, payload);
    clock.Next();
    Fence();
    clock.NextPersisted();
    return absl::OkStatus();
  }

 private:
  const Region region_;
  ZeroLog log_;
};

class StagedPmemlog final : public Staged {
 public:
  explicit StagedPmemlog(PmemlogPool log)
      : Staged("libpmemlog", {"append"}), log_(std::move(log)) {}

  absl::Status AppendOne() override {
    clock.Begin();
    bool appended = log_.Append(payload);
    if (!appended) {
      log_.Rewind();
      clock.Begin();
      appended = log_.Append(payload);
    }
    clock.NextPersisted();
    if (appended) return absl::OkStatus();
    return absl::UnavailableError("libpmemlog: append to an empty pool failed");
  }

 private:
  PmemlogPool log_;
};

// A copy of the same bytes, not fenced.
class StagedCopy final : public Staged {
 public:
  explicit StagedCopy(Region region)
      : Staged("libpmemlog", {"copy alone"}), region_(std::move(region)) {}

  absl::Status AppendOne() override {
    if (region_.bytes().size() - end_ < kStagedBytes) end_ = 0;
    clock.Begin();
    CopyAndFlush(region_.bytes().data() + end_, payload.data(), kStagedBytes);
    clock.Next();
    // The next copy must not wait for this one's stores.
    Fence();
    end_ += kStagedBytes;
    return absl::OkStatus();
  }

 private:
  const Region region_;
  uint64_t end_ = 0;
};

using AllStaged = std::vector<std::unique_ptr<Staged>>;

absl::StatusOr<AllStaged> MakeAllStaged(const Workload& workload) {
  AllStaged all;
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> stages,
                           MakeScratchLog(workload));
  all.push_back(std::make_unique<StagedAlpheus>(std::move(stages)));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> whole,
                           MakeScratchLog(workload));
  all.push_back(std::make_unique<StagedAlpheusAppend>(std::move(whole)));
  all.push_back(std::make_unique<StagedChecksum>());
  ALPHEUS_ASSIGN_OR_RETURN(Region flex, MakeScratchRegion(workload, "flex"));
  all.push_back(std::make_unique<StagedFlex>(std::move(flex)));
  ALPHEUS_ASSIGN_OR_RETURN(Region zero, MakeScratchRegion(workload, "zero"));
  all.push_back(std::make_unique<StagedZero>(std::move(zero)));
  const ScratchFile file(RegionFilePath(workload, "libpmemlog"));
  ALPHEUS_ASSIGN_OR_RETURN(
      PmemlogPool pmemlog,
      PmemlogPool::Create(file.path(), workload.ring_bytes));
  all.push_back(std::make_unique<StagedPmemlog>(std::move(pmemlog)));
  ALPHEUS_ASSIGN_OR_RETURN(Region copy, MakeScratchRegion(workload, "copy"));
  all.push_back(std::make_unique<StagedCopy>(std::move(copy)));
  return all;
}

absl::Status AppendMany(Staged& staged, uint64_t ops) {
  for (uint64_t op = 0; op < ops; ++op) {
    ALPHEUS_RETURN_IF_ERROR(staged.AppendOne());
  }
  return absl::OkStatus();
}

Overhead MeasureOverhead() {
  std::vector<double> plain(10'000);
  std::vector<double> persisted(plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    uint64_t start = Ticks();
    plain[i] = static_cast<double>(Ticks() - start);
    start = Ticks();
    persisted[i] = static_cast<double>(TicksWhenStored() - start);
  }
  return {MiddleMean(std::move(plain)), MiddleMean(std::move(persisted))};
}

}  // namespace

absl::Status MeasureStages(const Settings& settings, Report* report) {
  const Workload workload{.folder = settings.folder,
                          .ring_bytes = settings.ring_bytes,
                          .payload_bytes = kStagedBytes};
  ALPHEUS_ASSIGN_OR_RETURN(const AllStaged all, MakeAllStaged(workload));
  const double ticks_per_nano = TicksPerNano();
  for (const auto& staged : all) {
    ALPHEUS_RETURN_IF_ERROR(
        AppendMany(*staged, workload.ring_bytes / kStagedBytes));
    staged->clock.DropRound();
  }
  const auto turn = [&](size_t i) -> absl::Status {
    const Overhead overhead = MeasureOverhead();
    ALPHEUS_RETURN_IF_ERROR(AppendMany(*all[i], settings.stage_ops));
    all[i]->clock.EndRound(overhead, ticks_per_nano);
    return absl::OkStatus();
  };
  ALPHEUS_RETURN_IF_ERROR(Interleave(settings.rounds, all.size(), turn));
  for (const auto& staged : all) {
    staged->clock.Report(staged->name, &report->measurements);
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
