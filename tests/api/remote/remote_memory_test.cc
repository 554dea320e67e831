// SPDX-License-Identifier: Apache-2.0
// The public interface, over TCP on loopback.
#include "alpheus/remote_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/persistent_region.h"
#include "api/grpc/access/token_file.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

constexpr char kClusterText[] = "9f0c5f5e6a0b4c0e8f5a2d1f6d6f4b1a";

class RemoteMemoryTest : public ::testing::Test {
 protected:
  RemoteMemoryTest() {
    reader_ = AddToken("reader", "read");
    writer_ = AddToken("writer", "append");
    inbox_.emplace(
        *PersistentRegion::Create(directory_.File("memory"), kPageBytes));
    offers_ = *MemoryOffers::Serve({.cluster_id = kClusterText,
                                    .address = "127.0.0.1:0",
                                    .tokens_file = directory_.File("tokens"),
                                    .node = 3});
    std::ranges::fill(ring_, std::byte{7});
    EXPECT_TRUE(offers_->OfferToRead("ring", ring_, {"read", "append"}).ok());
    EXPECT_TRUE(offers_->OfferToUpdate("inbox", *inbox_, {"append"}, "").ok());
  }

  std::string AddToken(const std::string& name, const std::string& role) {
    EntropyRandom random;
    const auto token = rpc::MakeToken(name, {role}, {"main"}, "", random);
    EXPECT_TRUE(
        rpc::AddToTokenFile(directory_.File("tokens"), token->entry).ok());
    return token->token;
  }
  RemoteMemoryOptions Options(const std::string& token) const {
    return {.cluster_id = kClusterText,
            .address = offers_->address(),
            .token = token,
            .read = {"ring"},
            .open_timeout_ms = kPatienceMs,
            .operation_timeout_ms = kPatienceMs};
  }
  RemoteMemoryOptions UpdatingOptions() const {
    RemoteMemoryOptions options = Options(writer_);
    options.updated = "inbox";
    return options;
  }

  TempDirectory directory_;
  std::string reader_;
  std::string writer_;
  std::vector<std::byte> ring_ = std::vector<std::byte>(4096);
  std::optional<PersistentRegion> inbox_;
  std::unique_ptr<MemoryOffers> offers_;
};

TEST_F(RemoteMemoryTest, ReadsSwapsAndUpdates) {
  auto memory = RemoteMemory::Open(UpdatingOptions());
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->region_bytes(0), 4096U);
  EXPECT_EQ((*memory)->region_bytes(1), kPageBytes);
  const std::vector<std::byte> bytes(24, std::byte{5});
  std::vector<std::byte> ring(16);
  std::vector<std::byte> inbox(24);
  std::vector<absl::Status> ends;
  const auto note = [&](const absl::Status& end) { ends.push_back(end); };
  uint64_t found = 99;
  ASSERT_TRUE((*memory)->Read(0, 8, ring, note).ok());
  ASSERT_TRUE((*memory)->Update(64, bytes, note).ok());
  ASSERT_TRUE((*memory)
                  ->CompareAndSwap(0, 0, 42,
                                   [&](const absl::StatusOr<uint64_t>& was) {
                                     found = *was;
                                   })
                  .ok());
  ASSERT_TRUE((*memory)->Wait(InPatience()).ok());
  ASSERT_TRUE((*memory)->Persist(0, 8, note).ok());
  ASSERT_TRUE((*memory)->Read(1, 64, inbox, note).ok());
  ASSERT_TRUE((*memory)->Wait(InPatience()).ok());
  EXPECT_EQ((*memory)->Poll(), 0U);
  EXPECT_EQ(ends, std::vector<absl::Status>(4));
  EXPECT_EQ(found, 0U);
  EXPECT_EQ(ring, std::vector<std::byte>(16, std::byte{7}));
  EXPECT_EQ(inbox, bytes);
  // Two reads, a swap, a write with its message, and another message.
  EXPECT_EQ((*memory)->counts().messages, 6U);
  EXPECT_EQ((*memory)->counts().acks, 2U);
  EXPECT_EQ((*memory)->counts().round_trips, 5U);
  // In the file, too.
  memory->reset();
  offers_.reset();
  inbox_.reset();
  const std::vector<std::byte> file = ReadFile(directory_.File("memory"));
  uint64_t word = 0;
  std::memcpy(&word, file.data(), sizeof word);
  EXPECT_EQ(word, 42U);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), file.begin() + 64));
}

TEST_F(RemoteMemoryTest, OpeningSaysWhyNot) {
  RemoteMemoryOptions options = Options(reader_);
  EXPECT_TRUE(RemoteMemory::Open(options).ok());
  options.token = "alph_other";
  EXPECT_TRUE(absl::IsUnauthenticated(RemoteMemory::Open(options).status()));
  options = Options(reader_);
  options.updated = "inbox";
  EXPECT_TRUE(absl::IsPermissionDenied(RemoteMemory::Open(options).status()));
  options = Options(reader_);
  options.read = {"nothing"};
  EXPECT_TRUE(absl::IsNotFound(RemoteMemory::Open(options).status()));
  options = Options(reader_);
  options.cluster_id = "0123456789abcdef0123456789abcdef";
  EXPECT_TRUE(absl::IsNotFound(RemoteMemory::Open(options).status()));
  options.cluster_id = "none";
  EXPECT_TRUE(absl::IsInvalidArgument(RemoteMemory::Open(options).status()));
}

TEST_F(RemoteMemoryTest, OffersSayWhyNot) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(offers_->OfferToRead("a", ring_, {"write"})));
  EXPECT_TRUE(absl::IsInvalidArgument(offers_->OfferToRead("a", ring_, {})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      offers_->OfferToUpdate("a", *inbox_, {"append"}, "")));
  ASSERT_TRUE(offers_->Withdraw("inbox").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      offers_->OfferToUpdate("a", *inbox_, {"append"}, "fast")));
  ASSERT_TRUE(offers_->Protect(inbox_->bytes()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      offers_->OfferToUpdate("a", *inbox_, {"append"}, "")));
  EXPECT_TRUE(absl::IsNotFound(offers_->Withdraw("a")));
  EXPECT_TRUE(absl::IsNotFound(
      MemoryOffers::Serve({.cluster_id = kClusterText,
                           .address = "127.0.0.1:0",
                           .tokens_file = directory_.File("none")})
          .status()));
}

TEST_F(RemoteMemoryTest, WithdrawnRegionIsGone) {
  auto memory = RemoteMemory::Open(UpdatingOptions());
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE(offers_->Withdraw("inbox").ok());
  const std::vector<std::byte> bytes(8, std::byte{5});
  std::optional<absl::Status> end;
  // It may have heard already that the connection is over.
  const absl::Status posted = (*memory)->Update(
      0, bytes, [&](const absl::Status& status) { end = status; });
  EXPECT_FALSE((*memory)->Wait(InPatience()).ok());
  EXPECT_FALSE(posted.ok() ? end->ok() : absl::IsInvalidArgument(posted));
  EXPECT_EQ(inbox_->bytes()[0], std::byte{0});
}

// A token that is taken out of the file.
TEST_F(RemoteMemoryTest, RevokedTokenIsRefusedAfterAReload) {
  auto memory = RemoteMemory::Open(Options(reader_));
  ASSERT_TRUE(memory.ok()) << memory.status();
  WriteFile(directory_.File("tokens"), {});
  ASSERT_TRUE(offers_->ReloadTokens().ok());
  EXPECT_TRUE(
      absl::IsUnauthenticated(RemoteMemory::Open(Options(reader_)).status()));
  // The one that was open ends soon.
  std::vector<std::byte> into(8);
  absl::Status end;
  while (end.ok()) {
    const absl::Status posted = (*memory)->Read(0, 0, into, nullptr);
    end = posted.ok() ? (*memory)->Wait(InPatience()) : posted;
  }
  EXPECT_FALSE(absl::IsDeadlineExceeded(end)) << end;
}

}  // namespace
}  // namespace alpheus::testing
