// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/fabric/conformance.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace alpheus::testing {

using fabric::Completion;
using fabric::ConnectionEvent;
using fabric::ConnectionId;

namespace {

constexpr uint64_t kGuardBytes = 128;

bool AreAll(std::span<const std::byte> bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) {
    return byte == static_cast<std::byte>(value);
  });
}

}  // namespace

uint64_t TestRegion::Word(uint64_t offset) const {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

void TestRegion::SetWord(uint64_t offset, uint64_t value) const {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

void TestRegion::Fill(int value) const {
  std::memset(bytes.data(), value, bytes.size());
}

bool TestRegion::IsAll(int value) const { return AreAll(bytes, value); }

void FabricConformanceTest::SetUp() {
  world_ = GetParam().make();
  ASSERT_NE(world_, nullptr);
  ASSERT_GE(world_->hosts(), 3);
  completions_.resize(static_cast<size_t>(world_->hosts()));
  events_.resize(static_cast<size_t>(world_->hosts()));
}

void FabricConformanceTest::TearDown() {
  world_.reset();
  for (const Arena& arena : arenas_) {
    const std::span<std::byte> all = arena.memory.bytes;
    EXPECT_TRUE(AreAll(all.first(kGuardBytes), kGuard)) << "FB4";
    EXPECT_TRUE(AreAll(all.subspan(kGuardBytes + arena.bytes), kGuard))
        << "FB4";
  }
}

bool FabricConformanceTest::Pass() {
  bool some = world_->Pass();
  for (int host = 0; host < world_->hosts(); ++host) {
    std::array<Completion, 16> taken;
    std::vector<ConnectionEvent> events;
    size_t count = 0;
    do {
      count = fabric(host).Poll(taken, &events);
      completions_[host].insert(completions_[host].end(), taken.begin(),
                                taken.begin() + static_cast<ptrdiff_t>(count));
      some = some || count > 0;
    } while (count == taken.size());
    some = some || !events.empty();
    events_[host].insert(events_[host].end(), events.begin(), events.end());
  }
  return some;
}

bool FabricConformanceTest::Until(const std::function<bool()>& done) {
  const int64_t end = world_->NowNanos() + kWaitNanos;
  while (!done()) {
    if (!Pass() || world_->NowNanos() > end) return done();
  }
  return true;
}

bool FabricConformanceTest::BecomesVisible(
    const std::function<bool()>& landed) {
  return world_->CompletedWritesAreVisible() ? landed() : Until(landed);
}

void FabricConformanceTest::Settle() {
  constexpr int kPasses = 20'000;
  for (int pass = 0; pass < kPasses; ++pass) {
    if (!Pass()) return;
  }
}

TestRegion FabricConformanceTest::MakeRegion(int host, uint64_t bytes,
                                             fabric::RemoteAccess access) {
  Arena arena;
  arena.bytes = bytes;
  arena.memory = world_->Memory(host, bytes + 2 * kGuardBytes, access);
  const std::span<std::byte> all = arena.memory.bytes;
  std::memset(all.data(), kGuard, all.size());
  TestRegion region;
  region.bytes = all.subspan(kGuardBytes, bytes);
  region.Fill(0);
  const auto key = fabric(host).Register(region.bytes, access);
  EXPECT_TRUE(key.ok()) << key.status();
  if (key.ok()) region.key = *key;
  arenas_.push_back(std::move(arena));
  return region;
}

std::string FabricConformanceTest::Listening(int host) {
  std::string& address = addresses_[host];
  if (address.empty()) {
    const auto listening = fabric(host).Listen(world_->ListenAddress(host));
    EXPECT_TRUE(listening.ok()) << listening.status();
    if (listening.ok()) address = *listening;
  }
  return address;
}

ConnectionEvent FabricConformanceTest::Await(int host,
                                             ConnectionEvent::Kind kind) {
  std::deque<ConnectionEvent>& events = events_[host];
  auto found = events.end();
  EXPECT_TRUE(Until([&] {
    found = std::find_if(
        events.begin(), events.end(),
        [&](const ConnectionEvent& event) { return event.kind == kind; });
    return found != events.end();
  })) << "event "
      << static_cast<int>(kind) << " at host " << host;
  if (found == events.end()) return {};
  ConnectionEvent event = *found;
  events.erase(found);
  return event;
}

bool FabricConformanceTest::HasEvent(int host, ConnectionEvent::Kind kind,
                                     ConnectionId connection) {
  return std::any_of(events_[host].begin(), events_[host].end(),
                     [&](const ConnectionEvent& event) {
                       return event.kind == kind &&
                              event.connection == connection;
                     });
}

TestLink FabricConformanceTest::Link(int host, int peer) {
  TestLink link{.host = host, .peer = peer, .at_host = {}, .at_peer = {}};
  const auto connection = fabric(host).Connect(Listening(peer), "", Deadline());
  EXPECT_TRUE(connection.ok()) << connection.status();
  if (!connection.ok()) return link;
  link.at_host = *connection;
  link.at_peer = Await(peer, ConnectionEvent::Kind::kRequested).connection;
  EXPECT_TRUE(fabric(peer).Accept(link.at_peer, "").ok());
  EXPECT_EQ(Await(host, ConnectionEvent::Kind::kEstablished).connection,
            link.at_host);
  EXPECT_EQ(Await(peer, ConnectionEvent::Kind::kEstablished).connection,
            link.at_peer);
  return link;
}

Completion FabricConformanceTest::TakeFirst(
    int host, const std::function<bool(const Completion&)>& wanted) {
  std::deque<Completion>& all = completions_[host];
  auto found = all.end();
  EXPECT_TRUE(Until([&] {
    found = std::find_if(all.begin(), all.end(), wanted);
    return found != all.end();
  })) << "no completion at host "
      << host;
  if (found == all.end()) return {};
  const Completion completion = *found;
  all.erase(found);
  return completion;
}

Completion FabricConformanceTest::Next(int host, ConnectionId connection) {
  return TakeFirst(host, [&](const Completion& completion) {
    return completion.connection == connection;
  });
}

Completion FabricConformanceTest::NextReceive(int host,
                                              ConnectionId connection) {
  return TakeFirst(host, [&](const Completion& completion) {
    return completion.connection == connection &&
           (completion.operation == fabric::Operation::kReceive ||
            completion.operation == fabric::Operation::kReceiveImmediate);
  });
}

size_t FabricConformanceTest::CompletionsOf(int host, ConnectionId connection) {
  return static_cast<size_t>(
      std::count_if(completions_[host].begin(), completions_[host].end(),
                    [&](const Completion& completion) {
                      return completion.connection == connection;
                    }));
}

void FabricConformanceTest::ExpectOutcome(
    const std::function<absl::Status(ConnectionId)>& post,
    fabric::CompletionStatus expected) {
  const TestLink link = Link(0, 1);
  EXPECT_TRUE(fabric(1).PostReceive(link.at_peer, fabric::WorkId(1), {}).ok());
  const absl::Status posted = post(link.at_host);
  ASSERT_TRUE(posted.ok()) << posted;
  EXPECT_EQ(Next(0, link.at_host).status, expected);
  if (expected != fabric::CompletionStatus::kOk) ExpectBrokenAtBothEnds(link);
  EXPECT_TRUE(fabric(0).Close(link.at_host).ok());
  EXPECT_TRUE(fabric(1).Close(link.at_peer).ok());
}

void FabricConformanceTest::ExpectBrokenAtBothEnds(const TestLink& link) {
  using Kind = ConnectionEvent::Kind;
  EXPECT_TRUE(Until([&] {
    return HasEvent(link.host, Kind::kDisconnected, link.at_host) &&
           HasEvent(link.peer, Kind::kDisconnected, link.at_peer);
  }));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      fabric(link.host).PostSend(link.at_host, fabric::WorkId(999), {})));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      fabric(link.peer).PostSend(link.at_peer, fabric::WorkId(999), {})));
}

}  // namespace alpheus::testing
