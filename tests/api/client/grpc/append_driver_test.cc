// SPDX-License-Identifier: Apache-2.0
// How the client treats a primary that is silent, or whose streams end.
#include "api/client/grpc/append_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <coroutine>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "api/client/grpc/log_client.h"
#include "tests/api/client/grpc/scripted_primary.h"
#include "tests/support/fixtures/patience.h"
#include "tools/nemesis/links/cutting_proxy.h"

namespace alpheus::testing {
namespace {

using Stream = ScriptedPrimary::Stream;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

class AppendDriverTest : public ::testing::Test {
 protected:
  void Start(std::deque<Stream> script, size_t message_bytes_max = 1'000,
             int lost_openings = 0) {
    const bool has_script = !script.empty();
    primary_ =
        std::make_unique<ScriptedPrimary>(std::move(script), lost_openings);
    client::LogClientOptions options;
    options.addresses = {primary_->address()};
    options.stall_ms = kPatienceMs;
    // On a busy machine a good stream may be given up, too, and nothing is lost
    // by it. Without a script no stream is silent.
    if (has_script) options.stall_ms = 50;
    options.message_bytes_max = message_bytes_max;
    auto client = client::LogClient::Start(options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  absl::StatusOr<client::Appended> Append(const std::string& text) {
    return client_->Append({.parts = {text}}, kPatienceDuration);
  }
  // Appends "a", whose callback appends each of these letters. Returns what
  // came after "a", by message, once all have their answers.
  std::vector<std::string> AppendInCallback(const std::string& letters) {
    const auto append_all =
        [this, &letters](const absl::StatusOr<client::Appended>& first) {
          EXPECT_TRUE(first.ok()) << first.status();
          for (const char letter : letters) {
            const absl::Status taken =
                client_->AppendAsync({.parts = {std::string(1, letter)}}, {});
            EXPECT_TRUE(taken.ok()) << taken;
          }
        };
    const absl::Status taken =
        client_->AppendAsync({.parts = {"a"}}, append_all);
    EXPECT_TRUE(taken.ok()) << taken;
    const absl::Status flushed = client_->Flush(kPatienceDuration);
    EXPECT_TRUE(flushed.ok()) << flushed;
    std::vector<std::string> messages = primary_->messages();
    EXPECT_FALSE(messages.empty());
    if (!messages.empty()) messages.erase(messages.begin());
    return messages;
  }

  std::unique_ptr<ScriptedPrimary> primary_;
  std::unique_ptr<client::LogClient> client_;
};

// ADR3.
TEST_F(AppendDriverTest, SilentPrimaryThatLacksTheRequestGetsItAgain) {
  Start({Stream::kDropsAndIsSilent, Stream::kDropsAndIsSilent});
  EXPECT_TRUE(Append("a").ok());
  EXPECT_THAT(primary_->appended(), ElementsAre("a"));
  EXPECT_GE(primary_->streams(), 3);
}

// ADR3.
TEST_F(AppendDriverTest, SilentPrimaryThatHasTheRequestIsBelieved) {
  Start({Stream::kTakesAndIsSilent});
  EXPECT_TRUE(Append("a").ok());
  EXPECT_TRUE(Append("b").ok());
  EXPECT_THAT(primary_->appended(), ElementsAre("a", "b"));
}

// ADR7. The primary has begun the client each time, and could not say so.
TEST_F(AppendDriverTest, ClientWhoseBeginningIsNotAnsweredAsksByTheSameKey) {
  Start({}, 1'000, /*lost_openings=*/2);
  EXPECT_TRUE(Append("a").ok());
  const std::vector<std::string> keys = primary_->keys();
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].size(), 16u);
  EXPECT_THAT(keys, Each(keys[0]));
  const std::string before = keys[0];
  client_.reset();
  Start({});
  EXPECT_TRUE(Append("a").ok());
  EXPECT_NE(primary_->keys().at(0), before) << "another client";
}

// ADR4.
TEST_F(AppendDriverTest, StreamsThatEndAreBegunAgain) {
  Start(std::deque<Stream>(5, Stream::kEnds));
  EXPECT_TRUE(Append("a").ok());
  EXPECT_THAT(primary_->appended(), ElementsAre("a"));
  EXPECT_GE(primary_->streams(), 6);
}

// ADR5.
TEST_F(AppendDriverTest, ClientWithAllItsAnswersIsClosedInTheLog) {
  Start({});
  EXPECT_TRUE(Append("a").ok());
  EXPECT_EQ(primary_->closed(), 0);
  client_.reset();
  EXPECT_EQ(primary_->closed(), 1);
}

TEST_F(AppendDriverTest, ClientThatLacksAnAnswerStaysInTheLog) {
  Start(std::deque<Stream>(1'000, Stream::kDropsAndIsSilent));
  std::optional<absl::Status> answer;
  ASSERT_TRUE(
      client_
          ->AppendAsync({.parts = {"a"}},
                        [&](const absl::StatusOr<client::Appended>& it) {
                          answer = it.status();
                        })
          .ok());
  client_.reset();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(absl::IsCancelled(*answer)) << *answer;
  EXPECT_EQ(primary_->closed(), 0);
}

// NDS1. A node may be far away. A client once gave up each connection that was
// not there within milliseconds, and began another one. Here the first bytes
// take as long as 5,000 calls to a near node.
TEST_F(AppendDriverTest, ConnectionMayTakeItsTime) {
  Start({});
  const auto far = demo::CuttingProxy::Start(primary_->address());
  ASSERT_TRUE(far.ok()) << far.status();
  (*far)->Cut();
  client::LogClientOptions options;
  options.addresses = {(*far)->address()};
  options.answer_ms = kPatienceMs;
  const auto waiting = client::LogClient::Start(options);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  ASSERT_TRUE((*waiting)->AppendAsync({.parts = {"far"}}, {}).ok());
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(Append("near").ok());
  (*far)->Heal();
  EXPECT_TRUE((*waiting)->Flush(kPatienceDuration).ok());
  EXPECT_EQ((*far)->connections(), 1U);
}

TEST_F(AppendDriverTest, RequestThatFitsIntoNoMessageIsRefusedAtOnce) {
  Start({});
  const absl::Status refused = client_->AppendAsync(
      {.parts = {std::string(client::kRequestBytesMax + 1, 'x')}}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_TRUE(Append("a").ok());
  EXPECT_THAT(primary_->appended(), ElementsAre("a"));
}

// ADR6.
TEST_F(AppendDriverTest, RequestsOfOneCallbackAreOneMessage) {
  Start({});
  EXPECT_THAT(AppendInCallback("bcdef"), ElementsAre("bcdef"));
}

// ADR6. What is behind the first message may be sent in one or two.
TEST_F(AppendDriverTest, FullMessageDoesNotWaitForTheCallbacksEnd) {
  Start({}, 3);
  EXPECT_THAT(AppendInCallback("bcdef"), Contains("bcd"));
  EXPECT_THAT(primary_->appended(), ElementsAre("a", "b", "c", "d", "e", "f"));
}

// A coroutine that runs to its first await when it is called.
struct Detached {
  // NOLINTBEGIN(readability-identifier-naming): the language's names
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  // NOLINTEND(readability-identifier-naming)
};

// GCC 12 takes no list in an operand of co_await.
client::Payload PayloadOf(const char* text) { return {.parts = {text}}; }

Detached AppendTwo(client::LogClient& client, bool& is_over) {
  const auto first = co_await client.CoAppend(PayloadOf("a"));
  EXPECT_TRUE(first.ok()) << first.status();
  const auto none = co_await client.CoAppend(client::Payload());
  EXPECT_TRUE(absl::IsInvalidArgument(none.status())) << none.status();
  const auto second = co_await client.CoAppend(PayloadOf("b"));
  EXPECT_TRUE(second.ok()) << second.status();
  is_over = true;
}

TEST_F(AppendDriverTest, CoroutineAwaitsItsAnswers) {
  Start({Stream::kEnds});
  bool is_over = false;
  AppendTwo(*client_, is_over);
  ASSERT_TRUE(client_->Flush(kPatienceDuration).ok());
  EXPECT_TRUE(is_over);
  EXPECT_THAT(primary_->appended(), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace alpheus::testing
