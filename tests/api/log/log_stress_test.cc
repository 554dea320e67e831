// SPDX-License-Identifier: Apache-2.0
// Many threads on a small ring: random reserve, copy, complete, abort, force,
// append and cleanup, wrapping every few milliseconds. Run under
// ThreadSanitizer too (tools/dev test --sanitize thread).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "log/base/mix.h"
#include "log/base/random.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

constexpr int kThreads = 16;
constexpr uint64_t kRegionBytes = 256 << 10;

uint64_t SeedFromEnvironment() {
  const char* seed = std::getenv("ALPHEUS_TEST_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : 20260101;
}

// The payload that a record must have, from its owner and number.
std::string PayloadOf(uint64_t thread, uint64_t number) {
  std::string text =
      std::to_string(thread) + ":" + std::to_string(number) + ":";
  const uint64_t mixed = Mix(thread, number);
  text.append(mixed % 600, static_cast<char>('a' + mixed % 26));
  return text;
}

// Durable payloads by LSN, as the threads were told.
class Ledger {
 public:
  void Acknowledge(Lsn lsn, std::string payload) {
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(durable_.emplace(lsn.value, std::move(payload)).second)
        << "LSN " << lsn << " was given twice";
  }
  std::map<uint64_t, std::string> Take() { return std::move(durable_); }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::string> durable_;
};

class Writer {
 public:
  Writer(Log& log, Ledger& ledger, uint64_t thread, uint64_t seed)
      : log_(log),
        ledger_(ledger),
        thread_(thread),
        random_(Mix(seed, thread)) {}

  void Run(int operations) {
    for (int i = 0; i < operations; ++i) {
      switch (random_.Below(8)) {
        case 0:
          AbandonReservation();
          break;
        case 1:
        case 2:
          ReserveFillForce();
          break;
        case 3:
          CleanSome();
          break;
        default:
          Append();
      }
    }
  }

 private:
  // True if the call failed because the ring is full; makes room then.
  bool RingWasFull(const absl::Status& status) {
    if (status.code() != absl::StatusCode::kResourceExhausted) {
      EXPECT_TRUE(status.ok()) << status;
      return false;
    }
    CleanSome();
    return true;
  }

  void CleanSome() {
    const Lsn durable = log_.durable_lsn();
    if (durable < Lsn(40)) return;
    // Another thread may have cleaned further; that is fine.
    const absl::Status status = log_.CleanupThrough(durable - 30);
    EXPECT_TRUE(status.ok()) << status;
  }

  void Append() {
    const std::string payload = PayloadOf(thread_, number_);
    const std::span<const std::byte> whole = AsBytes(payload);
    const size_t cut = random_.Below(payload.size());
    const std::span<const std::byte> parts[] = {whole.first(cut),
                                                whole.subspan(cut)};
    const auto lsn = log_.Append(parts);
    if (RingWasFull(lsn.status())) return;
    EXPECT_GE(log_.durable_lsn(), *lsn);
    Acknowledge(*lsn, payload);
  }

  void ReserveFillForce() {
    const std::string payload = PayloadOf(thread_, number_);
    auto record = log_.Reserve(payload.size());
    if (RingWasFull(record.status())) return;
    if (random_.Below(2) == 0) {
      std::memcpy(record->payload().data(), payload.data(), payload.size());
    } else {
      const size_t cut = random_.Below(payload.size());
      EXPECT_TRUE(log_.Copy(*record, 0, AsBytes(payload).first(cut)).ok());
      EXPECT_TRUE(log_.Copy(*record, cut, AsBytes(payload).subspan(cut)).ok());
    }
    const auto lsn = log_.Complete(*std::move(record));
    ASSERT_TRUE(lsn.ok()) << lsn.status();
    const absl::Status forced = log_.Force(*lsn);
    ASSERT_TRUE(forced.ok()) << forced;
    Acknowledge(*lsn, payload);
  }

  void AbandonReservation() {
    const auto record = log_.Reserve(random_.Below(300));
    RingWasFull(record.status());
  }

  void Acknowledge(Lsn lsn, const std::string& payload) {
    ledger_.Acknowledge(lsn, payload);
    ++number_;
  }

  Log& log_;
  Ledger& ledger_;
  const uint64_t thread_;
  Random random_;
  uint64_t number_ = 0;
};

class LogStressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    seed_ = SeedFromEnvironment();
    RecordProperty("seed", std::to_string(seed_));
    std::printf("seed %lu (ALPHEUS_TEST_SEED)\n",
                static_cast<unsigned long>(seed_));
  }

  void RunWriters(Log& log, int operations) {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back(
          [&, t] { Writer(log, ledger_, t, seed_).Run(operations); });
    }
  }

  uint64_t seed_ = 0;
  Ledger ledger_;
};

int Operations() {
  const char* operations = std::getenv("ALPHEUS_STRESS_OPERATIONS");
  return operations != nullptr ? std::atoi(operations) : 20000;
}

TEST_F(LogStressTest, SixteenThreadsOnAFileLoseNothing) {
  testing::TempDirectory directory;
  const std::string path = directory.File("log");
  ASSERT_TRUE(Log::Format({path, kRegionBytes}).ok());
  auto log = Log::Open({.path = path, .exposure_records_max = 64});
  ASSERT_TRUE(log.ok()) << log.status();
  RunWriters(**log, Operations());
  const Lsn head = (*log)->head_lsn();
  const Lsn next = (*log)->next_lsn();
  ASSERT_TRUE((*log)->Close().ok());
  log->reset();

  log = Log::Open({.path = path});
  ASSERT_TRUE(log.ok()) << log.status();
  std::map<uint64_t, std::string> durable = ledger_.Take();
  EXPECT_GT(next.value, durable.size());
  durable.erase(durable.begin(), durable.lower_bound(head.value));
  ASSERT_TRUE((*log)
                  ->ForEachRecovered([&](const RecoveredRecord& record) {
                    const auto found = durable.find(record.lsn.value);
                    EXPECT_NE(found, durable.end())
                        << "LSN " << record.lsn << " was invented";
                    if (found != durable.end()) {
                      EXPECT_EQ(found->second, AsText(record.payload));
                      durable.erase(found);
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_TRUE(durable.empty()) << durable.size() << " records were lost";
}

TEST_F(LogStressTest, SixteenThreadsOnMemoryKeepTheirOrder) {
  auto log =
      Log::Open({.anonymous_bytes = kRegionBytes, .exposure_records_max = 32});
  ASSERT_TRUE(log.ok()) << log.status();
  RunWriters(**log, Operations());
  // Each thread's records have growing LSNs.
  std::map<std::string, uint64_t> last_number;
  for (const auto& [lsn, payload] : ledger_.Take()) {
    const size_t colon = payload.find(':');
    const uint64_t number = std::stoull(payload.substr(colon + 1));
    const auto [last, first_time] =
        last_number.emplace(payload.substr(0, colon), number);
    if (!first_time) {
      EXPECT_GT(number, last->second);
      last->second = number;
    }
  }
  EXPECT_EQ(last_number.size(), static_cast<size_t>(kThreads));
}

}  // namespace
}  // namespace alpheus
