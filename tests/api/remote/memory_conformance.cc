// SPDX-License-Identifier: Apache-2.0
#include "tests/api/remote/memory_conformance.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "api/grpc/access/crypto.h"

namespace alpheus::testing {
namespace {

constexpr Uuid kClusterOfWorld{0xc1, 0x5};
constexpr char kWriterOfWorld[] = "alph_writer_of_the_world";
constexpr uint64_t kWorldRegionBytes = 4096;

rpc::TokenEntry WriterEntry() {
  rpc::TokenEntry entry;
  entry.name = "writer";
  entry.sha256 = rpc::Sha256(kWriterOfWorld);
  entry.roles = rpc::Role::kAppend;
  entry.is_for_all_logs = true;
  return entry;
}

}  // namespace

MemoryConformanceTest::MemoryConformanceTest()
    : world_(GetParam()()), clock_(*world_) {
  ring_ = world_->Memory(1, kWorldRegionBytes, fabric::RemoteAccess::kRead);
  inbox_ = world_->Memory(1, kWorldRegionBytes, fabric::RemoteAccess::kAll);
  access_.emplace(std::vector<rpc::TokenEntry>{WriterEntry()},
                  WallClock::Real());
  server_ = std::make_unique<remote::MemoryServer>(
      world_->fabric(1), clock_, *access_, random_,
      remote::MemoryServerOptions{.cluster_id = kClusterOfWorld,
                                  .log = "main",
                                  .node = NodeId(1),
                                  .incarnation = 1});
  EXPECT_TRUE(server_
                  ->Offer({.name = "ring",
                           .bytes = ring_.bytes,
                           .readers = rpc::Role::kAppend})
                  .ok());
  EXPECT_TRUE(server_
                  ->Offer({.name = "inbox",
                           .memory = std::make_unique<
                               remote::UpdatedMemoryOf<LibpmemPersistence>>(
                               pmem_, inbox_.bytes),
                           .updaters = rpc::Role::kAppend})
                  .ok());
  address_ = *world_->fabric(1).Listen(world_->ListenAddress(1));
}

MemoryConformanceTest::~MemoryConformanceTest() {
  client_.reset();
  server_.reset();
}

bool MemoryConformanceTest::Run(const std::function<bool()>& is_done) {
  while (!is_done()) {
    const bool goes_on = world_->Pass();
    std::array<fabric::Completion, 16> some;
    std::vector<fabric::ConnectionEvent> events;
    size_t count = world_->fabric(1).Poll(some, &events);
    for (const fabric::ConnectionEvent& event : events) {
      server_->OnConnectionEvent(event);
    }
    for (size_t i = 0; i < count; ++i) server_->OnCompletion(some[i]);
    server_->Poll();
    events.clear();
    count = world_->fabric(0).Poll(some, &events);
    for (const fabric::ConnectionEvent& event : events) {
      client_->OnConnectionEvent(event);
    }
    for (size_t i = 0; i < count; ++i) client_->OnCompletion(some[i]);
    client_->Poll();
    if (!goes_on && !is_done()) return false;
  }
  return true;
}

void MemoryConformanceTest::Open(const std::string& token) {
  auto client = remote::MemoryClient::Connect(world_->fabric(0), clock_,
                                              random_, address_,
                                              {.cluster_id = kClusterOfWorld,
                                               .log = "main",
                                               .token = token,
                                               .read = {"ring"},
                                               .updated = "inbox"});
  ASSERT_TRUE(client.ok()) << client.status();
  client_ = *std::move(client);
  EXPECT_TRUE(
      Run([&] { return client_->is_open() || !client_->status().ok(); }));
}

TEST_P(MemoryConformanceTest, TokenOpensAndOperationsTakeEffect) {
  std::ranges::fill(ring_.bytes, std::byte{3});
  Open(kWriterOfWorld);
  ASSERT_TRUE(client_->is_open()) << client_->status();
  std::vector<std::byte> into(100);
  std::vector<std::byte> back(24);
  const std::vector<std::byte> bytes(24, std::byte{9});
  int ended = 0;
  uint64_t found = 99;
  const auto note = [&](const absl::Status& end) {
    EXPECT_TRUE(end.ok()) << end;
    ++ended;
  };
  ASSERT_TRUE(client_->Read(0, 12, into, note).ok());
  ASSERT_TRUE(client_->Update(64, bytes, note).ok());
  ASSERT_TRUE(client_
                  ->CompareAndSwap(8, 0, 5,
                                   [&](const absl::StatusOr<uint64_t>& was) {
                                     ASSERT_TRUE(was.ok()) << was.status();
                                     found = *was;
                                     ++ended;
                                   })
                  .ok());
  ASSERT_TRUE(Run([&] { return ended == 3; }));
  ASSERT_TRUE(client_->Persist(8, 8, note).ok());
  ASSERT_TRUE(client_->Read(1, 64, back, note).ok());
  ASSERT_TRUE(Run([&] { return ended == 5; }));
  EXPECT_EQ(into, std::vector<std::byte>(100, std::byte{3}));
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(found, 0U);
  uint64_t word = 0;
  std::memcpy(&word, inbox_.bytes.data() + 8, sizeof word);
  EXPECT_EQ(word, 5U);
}

TEST_P(MemoryConformanceTest, UnknownTokenIsRefused) {
  Open("alph_nobody");
  EXPECT_TRUE(absl::IsUnauthenticated(client_->status())) << client_->status();
}

// The key is void, and so is the connection.
TEST_P(MemoryConformanceTest, WithdrawalEndsTheClient) {
  Open(kWriterOfWorld);
  ASSERT_TRUE(client_->is_open()) << client_->status();
  ASSERT_TRUE(server_->Withdraw("inbox").ok());
  ASSERT_TRUE(Run([&] { return !client_->is_open(); }));
  const std::vector<std::byte> bytes(8, std::byte{9});
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->Update(0, bytes, nullptr)));
  EXPECT_EQ(inbox_.bytes[0], std::byte{0});
}

}  // namespace alpheus::testing
