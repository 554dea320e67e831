// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/bus_guard.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "log/base/bytes.h"
#include "log/pmem/file_descriptor.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;

constexpr size_t kPages = 16;

// A mapped file that is shorter than its mapping from its second page on.
class BusGuardTest : public ::testing::Test {
 protected:
  BusGuardTest() {
    testing::WriteFile(
        path_, std::vector<std::byte>(kPages * kPageBytes, std::byte{7}));
    const FileDescriptor fd(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    void* const data = mmap(nullptr, kPages * kPageBytes,
                            PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    EXPECT_NE(data, MAP_FAILED);
    data_ = static_cast<volatile std::byte*>(data);
    EXPECT_EQ(ftruncate(fd.get(), kPageBytes), 0);
  }
  ~BusGuardTest() override {
    guard_ = BusGuard();
    munmap(const_cast<std::byte*>(data_), kPages * kPageBytes);
  }
  void Guard(size_t pages = kPages) {
    guard_ =
        BusGuard(const_cast<std::byte*>(data_), pages * kPageBytes, alarm_);
  }

  std::byte Read(size_t at) const { return data_[at]; }
  // All threads may, and the handler puts a page there meanwhile.
  ABSL_ATTRIBUTE_NO_SANITIZE_THREAD void Store(size_t at, std::byte value) {
    data_[at] = value;
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("file");
  volatile std::byte* data_ = nullptr;
  std::shared_ptr<RegionAlarm> alarm_ = std::make_shared<RegionAlarm>("a path");
  BusGuard guard_;
};
// A sanitizer's handler would end the process in its own way.
class BusGuardDeathTest : public BusGuardTest {
 protected:
  BusGuardDeathTest() : before_(std::signal(SIGBUS, SIG_DFL)) {}
  ~BusGuardDeathTest() override {
    guard_ = BusGuard();
    std::signal(SIGBUS, before_);
  }

 private:
  void (*const before_)(int);
};

TEST_F(BusGuardTest, MissingPageRaisesTheAlarmAndReadsAsZeros) {
  Guard();
  EXPECT_EQ(Read(0), std::byte{7});
  EXPECT_FALSE(alarm_->is_raised());
  EXPECT_EQ(Read(kPageBytes + 5), std::byte{0});
  EXPECT_TRUE(alarm_->is_raised());
  EXPECT_THAT(std::string(alarm_->status().message()),
              AllOf(HasSubstr("a path"), HasSubstr("SIGBUS")));
}

TEST_F(BusGuardTest, StoreToAMissingPageGoesOn) {
  Guard();
  data_[2 * kPageBytes] = std::byte{9};
  EXPECT_TRUE(alarm_->is_raised());
  EXPECT_EQ(Read(2 * kPageBytes), std::byte{9});
  EXPECT_EQ(Read(0), std::byte{7}) << "other pages stay";
}

TEST_F(BusGuardTest, ManyThreadsMeetManyMissingPages) {
  Guard();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (size_t page = 1; page < kPages; ++page) {
        Store(page * kPageBytes, std::byte{3});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(alarm_->is_raised());
  for (size_t page = 1; page < kPages; ++page) {
    EXPECT_EQ(Read(page * kPageBytes), std::byte{3});
  }
}

TEST_F(BusGuardTest, AlarmIsThatOfTheMapping) {
  const auto other = std::make_shared<RegionAlarm>("another");
  std::vector<std::byte> memory(kPageBytes);
  const BusGuard elsewhere(memory.data(), memory.size(), other);
  Guard();
  BusGuard moved = std::move(guard_);
  data_[kPageBytes] = std::byte{1};
  EXPECT_TRUE(alarm_->is_raised());
  EXPECT_FALSE(other->is_raised());
}

TEST_F(BusGuardTest, LaterReasonIsToldWhereASignalCameFirst) {
  Guard();
  data_[kPageBytes] = std::byte{1};
  alarm_->Raise(absl::DataLossError("truncated"));
  alarm_->Raise(absl::DataLossError("something else"));
  EXPECT_EQ(alarm_->status(), absl::DataLossError("truncated"));
}

void HandlerOfTheProgram(int /*signal*/) {}

TEST_F(BusGuardTest, HandlerIsTheProgramsOwnAgainWhenNothingIsMapped) {
  struct sigaction theirs{};
  struct sigaction before{};
  theirs.sa_handler = HandlerOfTheProgram;
  ASSERT_EQ(sigaction(SIGBUS, &theirs, &before), 0);
  struct sigaction now{};
  {
    BusGuard first(const_cast<std::byte*>(data_), kPageBytes, alarm_);
    Guard();
    first = BusGuard();
    ASSERT_EQ(sigaction(SIGBUS, nullptr, &now), 0);
    EXPECT_NE(now.sa_handler, HandlerOfTheProgram);
  }
  guard_ = BusGuard();
  ASSERT_EQ(sigaction(SIGBUS, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, HandlerOfTheProgram);
}

// An access that is not guarded ends the process, as it always did.
TEST_F(BusGuardDeathTest, AddressOutsideEndsTheProcessBySigbus) {
  Guard(/*pages=*/1);
  EXPECT_EXIT(data_[kPageBytes] = std::byte{1}, KilledBySignal(SIGBUS), "");
  guard_ = BusGuard();
  EXPECT_EXIT(data_[kPageBytes] = std::byte{1}, KilledBySignal(SIGBUS), "");
}

TEST_F(BusGuardDeathTest, SignalThatAProcessSendsEndsTheProcess) {
  Guard();
  EXPECT_EXIT(raise(SIGBUS), KilledBySignal(SIGBUS), "");
}

// The handler that was there before hears of all other addresses. Only a
// process that has mapped nothing yet can show it.
TEST_F(BusGuardDeathTest, HandlerThatWasThereBeforeIsCalled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct sigaction theirs{};
        theirs.sa_handler = [](int) { _exit(42); };
        sigaction(SIGBUS, &theirs, nullptr);
        Guard(/*pages=*/2);
        data_[kPageBytes] = std::byte{1};
        if (!alarm_->is_raised()) _exit(1);
        data_[2 * kPageBytes] = std::byte{1};
      },
      ExitedWithCode(42), "");
}

}  // namespace
}  // namespace alpheus
