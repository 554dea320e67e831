// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "api/wiring/background_thread.h"
#include "api/wiring/populator.h"
#include "api/wiring/service_thread.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/waiter.h"
#include "log/pmem/region.h"
#include "log/pmem/region_alarm.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

TEST(BackgroundThreadTest, LeavesSignalsOfTheProcessToOtherThreads) {
  BackgroundThread thread;
  bool blocked = false;
  ASSERT_TRUE(thread
                  .Start([&blocked] {
                    sigset_t set;
                    pthread_sigmask(SIG_SETMASK, nullptr, &set);
                    blocked = sigismember(&set, SIGTERM) == 1;
                  })
                  .ok());
  thread.Join();
  EXPECT_TRUE(blocked);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

// The kernel ends a process whose thread blocks the SIGBUS that it caused. The
// creator's mask does not count: a program may block all signals for a while.
TEST(BackgroundThreadTest, LostPageReachesTheBusGuard) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  testing::TempDirectory directory;
  const std::string path = directory.File("region");
  absl::StatusOr<Region> region = Region::Create(path, 16 * kPageBytes);
  ASSERT_TRUE(region.ok()) << region.status();
  const volatile std::byte* const first = region->bytes().data();
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  BackgroundThread thread;
  std::byte read{1};
  ASSERT_TRUE(thread.Start([&] { read = *first; }).ok());
  thread.Join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(read, std::byte{0});
  EXPECT_TRUE(region->alarm()->is_raised());
}

TEST(BackgroundThreadTest, RunsAgainOnceJoined) {
  BackgroundThread thread;
  int runs = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(thread.Start([&runs] { ++runs; }).ok());
    thread.Join();
  }
  EXPECT_EQ(runs, 2);
}

// No room for a stack is the same to the caller as no thread.
TEST(BackgroundThreadTest, NoThreadLeftIsReported) {
#if defined(ALPHEUS_SANITIZED)
  GTEST_SKIP() << "skipped: a sanitizer needs address space of its own";
#else
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = pages * kPageBytes + (size_t{1} << 20);
  // A stack that no earlier thread has left behind fits.
  pthread_attr_t attributes;
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 30), 0);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  BackgroundThread thread;
  const absl::Status started = thread.Start([] {});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(started)) << started;
  // Nothing is left to join.
  EXPECT_TRUE(thread.Start([] {}).ok());
#endif
}

// `poll_acks` may come again and again within an interval, `poll` once; and the
// thread ends in the middle of one.
TEST(ServiceThreadTest, AttendsWithinTheInterval) {
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter);
  std::atomic<int> polls{0};
  std::atomic<int> polled{0};
  ServiceThread service({[&] {
                           ++polls;
                           return Polled::kMoved;
                         },
                         [](uint32_t, Deadline) {},
                         [&](Deadline until, const std::atomic<uint32_t>&) {
                           EXPECT_TRUE(until.is_set());
                           const bool again = ++polled < 3;
                           polled.notify_one();
                           return again;
                         }},
                        progress, waiter, std::chrono::hours(1));
  ASSERT_TRUE(service.Start().ok());
  for (int seen = 0; seen < 3; seen = polled) polled.wait(seen);
  service.Stop();
  EXPECT_EQ(polls, 1);
  EXPECT_EQ(polled, 3);
}

// It looks after the file, though nothing is used and the interval is long:
// what was put in its place meanwhile is to be found before the next append.
TEST(ServiceThreadTest, LooksWhetherAnythingIsUsedOrNot) {
  FutexWaiter waiter(Clock::Real());
  for (const bool is_used : {true, false}) {
    Progress progress(waiter);
    std::atomic<int> looks{0};
    ServiceThread service(
        {[&] { return is_used ? Polled::kMoved : Polled::kIdle; },
         [&](uint32_t seen, Deadline until) { progress.Wait(seen, until); },
         [](Deadline, const std::atomic<uint32_t>&) { return false; },
         [&] {
           ++looks;
           looks.notify_one();
           return Deadline::In(std::chrono::milliseconds(1));
         }},
        progress, waiter, std::chrono::hours(1));
    ASSERT_TRUE(service.Start().ok());
    for (int seen = 0; seen < 10; seen = looks) looks.wait(seen);
    service.Stop();
    EXPECT_GE(looks, 10) << is_used;
  }
}

// Stop does so for each kind of work, whether that waits already or is about
// to.
TEST(ServiceThreadTest, StopEndsWhatItAttendsTo) {
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter);
  std::atomic<int> polled{0};
  ServiceThread service(
      {[] { return Polled::kMoved; }, [](uint32_t, Deadline) {},
       [&](Deadline until, const std::atomic<uint32_t>& stop) {
         ++polled;
         polled.notify_one();
         waiter.Wait(stop, 0, until);
         return true;
       }},
      progress, waiter, std::chrono::hours(1));
  ASSERT_TRUE(service.Start().ok());
  polled.wait(0);
  service.Stop();
  EXPECT_GE(polled, 1);
}

class MappedFile {
 public:
  explicit MappedFile(size_t bytes) : bytes_(bytes) {
    const int fd = memfd_create("populator_test", 0);
    // Pages that the kernel has in memory.
    const std::string content(bytes, 'x');
    EXPECT_EQ(write(fd, content.data(), bytes), static_cast<ssize_t>(bytes));
    data_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT_NE(data_, MAP_FAILED);
    close(fd);
  }
  ~MappedFile() { munmap(data_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() {
    return {static_cast<std::byte*>(data_), bytes_};
  }

 private:
  size_t bytes_;
  void* data_;
};

// Page faults of this thread while it reads a byte of each page.
int64_t FaultsOfReading(std::span<const std::byte> pages) {
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  for (size_t i = 0; i < pages.size(); i += kPageBytes) {
    static_cast<void>(
        *static_cast<const volatile std::byte*>(pages.data() + i));
  }
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(PopulatorTest, FewPagesAreMappedAtOnce) {
#if !defined(MADV_POPULATE_READ)
  GTEST_SKIP() << "skipped: this system can't populate";
#elif defined(ALPHEUS_SANITIZED)
  GTEST_SKIP() << "skipped: a sanitizer's shadow of the pages faults, too";
#endif
  for (const bool is_in_page_cache : {true, false}) {
    MappedFile file(size_t{1} << 20);
    const Populator populator(file.bytes(), is_in_page_cache);
    EXPECT_LE(FaultsOfReading(file.bytes()), 2);
  }
}

// In the middle of its work, or with nothing to do: it joins.
TEST(PopulatorTest, MayBeDroppedAtAnyTime) {
  MappedFile file(size_t{64} << 20);
  {
    const Populator populator(file.bytes(), true);
  }
  {
    const Populator populator(file.bytes(), false);
  }
  {
    const Populator nothing(std::span<std::byte>(), true);
  }
}

}  // namespace
}  // namespace alpheus
