// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/old_primary.h"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "replication/fabric/verbs/verbs_fabric.h"

namespace alpheus::testing {
namespace {

using Kind = fabric::ConnectionEvent::Kind;

constexpr const char* kRole = "--old-primary";
constexpr uint64_t kWindow = 16;
// Long enough for a guest on a busy machine, and short of the peers' patience.
constexpr int64_t kPatienceNanos = 500'000'000;

// While it stands still its fabric looks at queues alone.
class StoppableClock final : public Clock {
 public:
  int64_t NowNanos() const override {
    return stopped_at_ != 0 ? stopped_at_ : Clock::Real().NowNanos();
  }
  void Stop() { stopped_at_ = NowNanos(); }
  void Go() { stopped_at_ = 0; }

 private:
  int64_t stopped_at_ = 0;
};

class Lane {
 public:
  Lane(uint64_t number, const OldPrimaryPlan& plan)
      : number_(number), plan_(plan), bytes_(kWindow * plan.write_bytes) {}

  absl::Status Begin() {
    fabric::verbs::VerbsFabricOptions options;
    options.device = plan_.device;
    options.source_host = plan_.host;
    options.limits = {.sends_max = kWindow,
                      .receives_max = 1,
                      .message_bytes_max = uint64_t{1} << 20,
                      .private_bytes_max = 64,
                      .retry_ns = kPatienceNanos};
    ALPHEUS_ASSIGN_OR_RETURN(
        fabric_, fabric::verbs::VerbsFabric::Open(options, clock_, random_));
    ALPHEUS_ASSIGN_OR_RETURN(
        own_key_, fabric_->Register(bytes_, fabric::RemoteAccess::kNone));
    return Connect();
  }

  absl::Status Step() {
    std::array<fabric::Completion, kWindow> done;
    std::vector<fabric::ConnectionEvent> events;
    const size_t count = fabric_->Poll(done, &events);
    for (size_t i = 0; i < count; ++i) {
      --under_way_;
      unfinished_ += done[i].status == fabric::CompletionStatus::kOk ? 0 : 1;
    }
    for (const fabric::ConnectionEvent& event : events) {
      if (event.connection != connection_) continue;
      if (event.kind == Kind::kEstablished) {
        Stream(event);
      } else {
        return Connect();
      }
    }
    while (is_streaming_ && under_way_ < kWindow) {
      if (!Write().ok()) break;  // an event says why
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Connect() {
    // All posted writes have completed: broken connections flush.
    if (connection_ != fabric::ConnectionId())
      (void)fabric_->Close(connection_);
    is_streaming_ = false;
    clock_.Go();
    const int64_t deadline = clock_.NowNanos() + 20 * kPatienceNanos;
    ALPHEUS_ASSIGN_OR_RETURN(
        connection_,
        fabric_->Connect(plan_.address, EncodePair(number_, unfinished_),
                         Deadline::AtNanos(deadline)));
    return absl::OkStatus();
  }

  void Stream(const fabric::ConnectionEvent& established) {
    const auto [key, bytes] = DecodePair(established.private_data);
    key_ = fabric::RegionKey(key);
    region_bytes_ = bytes;
    unfinished_ = 0;
    is_streaming_ = true;
    clock_.Stop();
  }

  absl::Status Write() {
    const uint64_t slot = writes_ % kWindow;
    const std::span<std::byte> from =
        std::span(bytes_).subspan(slot * plan_.write_bytes, plan_.write_bytes);
    // No two writes in a row to one place are alike.
    std::memset(from.data(), static_cast<int>(writes_ % 251 + 1), from.size());
    const uint64_t offset = writes_ * plan_.write_bytes % region_bytes_;
    ALPHEUS_RETURN_IF_ERROR(
        fabric_->PostWriteImmediate(connection_, fabric::WorkId(writes_),
                                    {own_key_, from}, {key_, offset}, 0));
    ++writes_;
    ++under_way_;
    return absl::OkStatus();
  }

  const uint64_t number_;
  const OldPrimaryPlan plan_;
  StoppableClock clock_;
  EntropyRandom random_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<fabric::verbs::VerbsFabric> fabric_;
  fabric::RegionKey own_key_;
  fabric::RegionKey key_;
  uint64_t region_bytes_ = 0;
  fabric::ConnectionId connection_;
  bool is_streaming_ = false;
  uint64_t writes_ = 0;
  uint64_t under_way_ = 0;
  uint64_t unfinished_ = 0;  // of this stream
};

absl::Status Run(const OldPrimaryPlan& plan) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint64_t number = 0; number < plan.lanes; ++number) {
    lanes.push_back(std::make_unique<Lane>(number, plan));
    ALPHEUS_RETURN_IF_ERROR(lanes.back()->Begin());
  }
  for (;;) {
    for (const auto& lane : lanes) ALPHEUS_RETURN_IF_ERROR(lane->Step());
  }
}

}  // namespace

std::string EncodePair(uint64_t first, uint64_t second) {
  std::string data(16, '\0');
  std::memcpy(data.data(), &first, 8);
  std::memcpy(data.data() + 8, &second, 8);
  return data;
}

std::pair<uint64_t, uint64_t> DecodePair(const std::string& data) {
  ALPHEUS_CHECK(data.size() == 16, "two numbers");
  std::pair<uint64_t, uint64_t> pair;
  std::memcpy(&pair.first, data.data(), 8);
  std::memcpy(&pair.second, data.data() + 8, 8);
  return pair;
}

OldPrimary::OldPrimary(const OldPrimaryPlan& plan) {
  std::array<std::string, 7> words = {"old_primary",
                                      kRole,
                                      plan.address,
                                      plan.host,
                                      plan.device,
                                      absl::StrCat(plan.lanes),
                                      absl::StrCat(plan.write_bytes)};
  std::array<char*, 8> arguments = {};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  ALPHEUS_CHECK(posix_spawn(&process_, "/proc/self/exe", nullptr, nullptr,
                            arguments.data(), environ) == 0,
                "this program can run once more");
}

OldPrimary::~OldPrimary() { Kill(); }

void OldPrimary::Kill() {
  if (process_ < 0) return;
  (void)kill(process_, SIGKILL);
  (void)waitpid(process_, nullptr, 0);
  process_ = -1;
}

bool OldPrimary::is_running() const {
  siginfo_t info = {};
  return process_ > 0 &&
         waitid(P_PID, static_cast<id_t>(process_), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

bool RanAsOldPrimary(int argc, char** argv, int* status) {
  if (argc != 7 || std::strcmp(argv[1], kRole) != 0) return false;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  OldPrimaryPlan plan = {
      .address = argv[2], .host = argv[3], .device = argv[4]};
  *status = 1;
  if (absl::SimpleAtoi(argv[5], &plan.lanes) &&
      absl::SimpleAtoi(argv[6], &plan.write_bytes)) {
    (void)std::fprintf(stderr, "old primary: %s\n",
                       Run(plan).ToString().c_str());
  }
  return true;
}

}  // namespace alpheus::testing
