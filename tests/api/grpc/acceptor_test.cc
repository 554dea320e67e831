// SPDX-License-Identifier: Apache-2.0
// Connections on loopback that the test takes in gRPC's place.
#include "api/grpc/connections/acceptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "log/base/deadline.h"
#include "log/base/mutex.h"
#include "tests/support/fixtures/no_descriptors.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::rpc {
namespace {

using fabric::tcp::Descriptor;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ManualClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_ns_; }
  void Advance(int64_t ns) { now_ns_ += ns; }

 private:
  std::atomic<int64_t> now_ns_ = 1'000'000'000'000;
};

constexpr int64_t kSecondNs = 1'000 * kNanosPerMs;

// Waits until it holds. Returns whether it does.
bool Eventually(const std::function<bool()>& holds) {
  const Deadline end = testing::InPatience();
  while (!holds()) {
    if (end.HasPassed(Clock::Real().NowNanos())) return false;
    std::this_thread::yield();
  }
  return true;
}

class AcceptorTest : public ::testing::Test {
 protected:
  void MustStart(const ConnectionLimitOptions& limits) {
    auto acceptor = Acceptor::Listen(
        "127.0.0.1:0", limits,
        [this](const std::string& sentence) {
          const MutexLock lock(mutex_);
          said_.push_back(sentence);
        },
        clock_);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
    const absl::Status started = acceptor_->Start([this](int descriptor) {
      const MutexLock lock(mutex_);
      taken_.emplace_back(descriptor);
    });
    ASSERT_TRUE(started.ok()) << started;
  }
  Descriptor Connect() {
    auto socket = fabric::tcp::StartConnect(acceptor_->address(), "");
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }
  size_t taken() {
    const MutexLock lock(mutex_);
    return taken_.size();
  }
  std::vector<std::string> said() {
    const MutexLock lock(mutex_);
    return said_;
  }
  // As gRPC ends a connection.
  void CloseOldest() {
    const MutexLock lock(mutex_);
    taken_.pop_front();
  }
  static bool IsClosed(const Descriptor& socket) {
    std::array<std::byte, 1> byte{};
    return fabric::tcp::ReceiveSome(socket, byte).outcome ==
           fabric::tcp::IoOutcome::kClosed;
  }

  ManualClock clock_;
  Mutex mutex_;
  std::deque<Descriptor> taken_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> said_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, ConnectionThatEndsMakesRoomForAnother) {
  MustStart({.open_max = 2});
  const Descriptor first = Connect();
  const Descriptor second = Connect();
  EXPECT_TRUE(Eventually([&] { return taken() == 2; }));
  const Descriptor third = Connect();
  EXPECT_TRUE(Eventually([&] { return IsClosed(third); }));
  EXPECT_EQ(acceptor_->refused(), 1u);
  EXPECT_FALSE(IsClosed(first));
  CloseOldest();
  clock_.Advance(kSecondNs);
  const Descriptor fourth = Connect();
  EXPECT_TRUE(Eventually([&] { return taken() == 2; }));
  EXPECT_FALSE(IsClosed(fourth));
  EXPECT_EQ(acceptor_->refused(), 1u);
  EXPECT_TRUE(Eventually([&] { return acceptor_->open() == 2; }));
}

// The number of a descriptor that was closed is another connection's soon.
TEST_F(AcceptorTest, NumberOfADescriptorThatComesAgainIsAnotherConnection) {
  MustStart({.open_max = 1});
  for (int i = 0; i < 20; ++i) {
    const Descriptor client = Connect();
    ASSERT_TRUE(Eventually([&] { return taken() == 1; })) << i;
    CloseOldest();
    clock_.Advance(kSecondNs);
  }
  EXPECT_EQ(acceptor_->refused(), 0u);
}

TEST_F(AcceptorTest, ConnectionsThatComeTooFastWait) {
  MustStart({.per_second = 100});
  std::vector<Descriptor> clients;
  clients.reserve(101);
  while (clients.size() < 101) clients.push_back(Connect());
  EXPECT_TRUE(Eventually([&] { return taken() == 100; }));
  clock_.Advance(kSecondNs / 100);
  EXPECT_TRUE(Eventually([&] { return taken() == 101; }));
  EXPECT_EQ(acceptor_->refused(), 0u);
}

TEST_F(AcceptorTest, RefusalsAreToldOnceAMinute) {
  MustStart({.open_max = 1});
  const Descriptor first = Connect();
  EXPECT_TRUE(Eventually([&] { return taken() == 1; }));
  const auto must_refuse = [&] {
    const Descriptor more = Connect();
    EXPECT_TRUE(Eventually([&] { return IsClosed(more); }));
  };
  must_refuse();
  must_refuse();
  ASSERT_THAT(said(), SizeIs(1));
  EXPECT_THAT(said()[0], HasSubstr("1 connections of clients are open"));
  clock_.Advance(61 * kSecondNs);
  must_refuse();
  ASSERT_THAT(said(), SizeIs(2));
  EXPECT_THAT(said()[1], HasSubstr("Closed since the start: 3"));
}

// None of them is lost.
TEST_F(AcceptorTest, ClientsWaitWhereDescriptorsRunOut) {
  MustStart({.per_second = 1});
  const Descriptor first = Connect();
  ASSERT_TRUE(Eventually([&] { return taken() == 1; }));
  const Descriptor second = Connect();
  {
    const testing::NoDescriptors none;
    clock_.Advance(kSecondNs);
    ASSERT_TRUE(Eventually([&] { return said().size() == 1; }));
    EXPECT_EQ(taken(), 1u);
  }
  EXPECT_THAT(said()[0], HasSubstr("clients wait"));
  clock_.Advance(kSecondNs);
  EXPECT_TRUE(Eventually([&] { return taken() == 2; }));
  EXPECT_EQ(acceptor_->refused(), 0u);
}

TEST_F(AcceptorTest, AddressOfAnotherIsTaken) {
  MustStart({});
  const auto second = Acceptor::Listen(acceptor_->address(), {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
}

}  // namespace
}  // namespace alpheus::rpc
