// SPDX-License-Identifier: Apache-2.0
#include "api/client/append/append_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace alpheus::client {
namespace {

using State = AppendSession::State;

class AppendSessionTest : public ::testing::Test {
 protected:
  uint64_t Append(const std::string& text) {
    const absl::StatusOr<uint64_t> sequence = session_.Append(
        {.parts = {text}}, [this, text](absl::StatusOr<Appended> answer) {
          answers_.emplace(text, std::move(answer));
        });
    EXPECT_TRUE(sequence.ok()) << sequence.status();
    return sequence.value_or(0);
  }
  // Returns what is sent, joined.
  std::string Sent(size_t bytes_max = 1'000) {
    std::string text;
    for (const Payload* payload : session_.TakeToSend(bytes_max).payloads) {
      text += payload->parts.front();
    }
    return text;
  }
  bool IsAnswered(const std::string& text) const {
    return answers_.contains(text);
  }

  AppendSession session_{{.unanswered_max = 5, .bytes_max = 10}};
  std::map<std::string, absl::StatusOr<Appended>> answers_;
};

TEST_F(AppendSessionTest, RequestsAreSentInTheirOrderOnceAClientIsOpen) {
  EXPECT_EQ(Append("a"), 1U);
  EXPECT_EQ(Append("b"), 2U);
  EXPECT_EQ(session_.state(), State::kNew);
  EXPECT_FALSE(session_.HasToSend());
  session_.Opened({5, 7}, 5);
  EXPECT_TRUE(session_.HasToSend());
  const Sending sending = session_.TakeToSend(1'000);
  EXPECT_EQ(sending.first_sequence, 1U);
  EXPECT_EQ(sending.lowest_unanswered, 1U);
  EXPECT_EQ(sending.payloads.size(), 2U);
  EXPECT_FALSE(session_.HasToSend());
}

TEST_F(AppendSessionTest, AnswersHavePlaces) {
  Append("a");
  Append("b");
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Done(1, 2, Place{5, 8});
  EXPECT_EQ(answers_.at("a")->place, (Place{5, 8}));
  EXPECT_EQ(answers_.at("b")->place, (Place{5, 9}));
  EXPECT_EQ(session_.unanswered(), 0U);
  EXPECT_EQ(session_.lowest_unanswered(), 3U);
}

TEST_F(AppendSessionTest, MessagesHaveRoomForSoManyBytes) {
  for (const char* text : {"aaa", "bbb", "c"}) Append(text);
  session_.Opened({5, 7}, 5);
  EXPECT_EQ(Sent(4), "aaa");
  EXPECT_EQ(Sent(4), "bbbc");
}

// ASN5.
TEST_F(AppendSessionTest, MessageHasOneDurability) {
  const auto append = [&](const std::string& text,
                          std::optional<Durability> durability) {
    Payload payload = {.parts = {text}};
    payload.durability = durability;
    EXPECT_TRUE(session_.Append(std::move(payload), {}).ok());
  };
  append("a", std::nullopt);
  append("b", std::nullopt);
  append("c", Durability::kAll);
  append("d", Durability::kAccepted);
  append("e", Durability::kAccepted);
  session_.Opened({5, 7}, 5);
  for (const auto& [text, durability] :
       std::vector<std::pair<std::string, std::optional<Durability>>>{
           {"ab", std::nullopt},
           {"c", Durability::kAll},
           {"de", Durability::kAccepted}}) {
    const Sending sending = session_.TakeToSend(1'000);
    std::string sent;
    for (const Payload* payload : sending.payloads) {
      sent += payload->parts.front();
    }
    EXPECT_EQ(sent, text);
    EXPECT_EQ(sending.durability, durability) << text;
  }
  EXPECT_FALSE(session_.HasToSend());
}

// ASN4.
TEST_F(AppendSessionTest, NoMoreIsKeptThanAllowed) {
  Append("aaaaaaaa");
  EXPECT_TRUE(absl::IsResourceExhausted(
      session_.Append({.parts = {"bbb"}}, {}).status()));
  Append("b");
  Append("c");
  Append("");
  Append("");
  EXPECT_TRUE(
      absl::IsResourceExhausted(session_.Append({.parts = {""}}, {}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(session_.Append({.parts = {}}, {}).status()));
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Done(1, 1, std::nullopt);
  Append("dddddddd");
}

TEST_F(AppendSessionTest, RequestLargerThanTheLimitGoesAlone) {
  Append(std::string(100, 'a'));
  session_.Opened({5, 7}, 5);
  EXPECT_EQ(Sent(4), std::string(100, 'a'));
}

// ASN2, ASN3.
TEST_F(AppendSessionTest, NothingIsSentAgainBeforeTheClientHasResumed) {
  for (const char* text : {"a", "b", "c"}) Append(text);
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Lost();
  EXPECT_EQ(session_.state(), State::kLost);
  EXPECT_FALSE(session_.HasToSend());
  EXPECT_EQ(session_.last_epoch(), 5U);
  const std::vector<std::pair<uint64_t, Place>> places = {{2, {5, 9}}};
  session_.Resumed(6, 3, 2, places);
  EXPECT_EQ(answers_.at("a")->place, std::nullopt);
  EXPECT_EQ(answers_.at("b")->place, (Place{5, 9}));
  EXPECT_FALSE(IsAnswered("c"));
  const Sending sending = session_.TakeToSend(1'000);
  EXPECT_EQ(sending.first_sequence, 3U);
  EXPECT_EQ(sending.lowest_unanswered, 3U);
  EXPECT_EQ(sending.resumption, 3U);
  EXPECT_EQ(session_.epoch(), 6U);
}

TEST_F(AppendSessionTest,
       OutcomesAreUnknownUnlessThePrimarySaysWhatItAdmitted) {
  for (const char* text : {"a", "b", "c"}) Append(text);
  session_.Opened({5, 7}, 5);
  Sent();
  Append("d");  // never sent
  session_.Done(1, 1, Place{5, 8});
  session_.Lost();
  session_.Lost();
  EXPECT_EQ(session_.unknown_outcomes(), 2U);
  session_.Resumed(6, 1, 1, {});
  Sent();
  session_.Lost(1);
  EXPECT_EQ(session_.unknown_outcomes(), 2U);
  session_.Resumed(6, 2, 1, {});
  Sent();
  session_.Lost(3);  // it was to answer 2 and 3
  EXPECT_EQ(session_.unknown_outcomes(), 4U);
}

// ASN3: a revoked token ends a stream in good order, and then the client.
TEST_F(AppendSessionTest, RequestsThatWereNotAdmittedAreNotUnknownAtTheEnd) {
  for (const char* text : {"a", "b", "c"}) Append(text);
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Lost(2);
  session_.End(absl::AbortedError("unknown"), absl::CancelledError("not sent"));
  EXPECT_TRUE(absl::IsAborted(answers_.at("b").status()));
  EXPECT_TRUE(absl::IsCancelled(answers_.at("c").status()));
}

TEST_F(AppendSessionTest, RefusalIsAnAnswer) {
  Append("a");
  Append("b");
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Refused(1, absl::FailedPreconditionError("another tail"));
  EXPECT_TRUE(absl::IsFailedPrecondition(answers_.at("a").status()));
  session_.SetBack(2);
  const Sending again = session_.TakeToSend(1'000);
  EXPECT_EQ(again.first_sequence, 2U);
  EXPECT_EQ(again.lowest_unanswered, 2U);
}

// One between was answered: a message has consecutive sequences.
TEST_F(AppendSessionTest, GapEndsAMessage) {
  for (const char* text : {"a", "b", "c"}) Append(text);
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Refused(2, absl::InvalidArgumentError("too large"));
  session_.SetBack(1);
  session_.SetBack(3);
  EXPECT_EQ(Sent(), "a");
  EXPECT_EQ(Sent(), "c");
}

TEST_F(AppendSessionTest, RequestsThatWereNeverSentAreNotUnknownAtTheEnd) {
  Append("a");
  session_.Opened({5, 7}, 5);
  Sent();
  Append("b");
  session_.End(absl::AbortedError("unknown"), absl::CancelledError("not sent"));
  EXPECT_TRUE(absl::IsAborted(answers_.at("a").status()));
  EXPECT_TRUE(absl::IsCancelled(answers_.at("b").status()));
  EXPECT_TRUE(
      absl::IsCancelled(session_.Append({.parts = {"c"}}, {}).status()));
}

TEST_F(AppendSessionTest, CallbackMayAppend) {
  ASSERT_TRUE(
      session_
          .Append({.parts = {"a"}},
                  [this](const absl::StatusOr<Appended>&) { Append("b"); })
          .ok());
  session_.Opened({5, 7}, 5);
  Sent();
  session_.Lost();
  session_.Resumed(5, 1, 1, {});
  EXPECT_EQ(session_.unanswered(), 1U);
  EXPECT_EQ(Sent(), "b");
}

}  // namespace
}  // namespace alpheus::client
