// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/log_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/api/grpc/server_fixture.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class LogClientTest : public ServerTest {
 protected:
  LogClientTest() { MustStart({.addresses = {server_->address()}}); }

  void MustStart(client::LogClientOptions options) {
    auto started = client::LogClient::Start(std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    appending_ = *std::move(started);
  }
  client::Appended MustAppendBy(const std::string& text) {
    const auto appended =
        appending_->Append({.parts = {text}}, kPatienceDuration);
    EXPECT_TRUE(appended.ok()) << appended.status();
    return appended.value_or(client::Appended());
  }

  std::unique_ptr<client::LogClient> appending_;
};

TEST_F(LogClientTest, AppendsAndSaysThePlace) {
  const client::Appended first = MustAppendBy("a");
  ASSERT_TRUE(first.place.has_value());
  EXPECT_EQ(first.place->lsn, 2u);
  EXPECT_EQ(MustAppendBy("b").place->lsn, 3u);
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b"));
}

TEST_F(LogClientTest, PartsAreOneRecord) {
  const auto appended =
      appending_->Append({.parts = {"a", "bc"}, .tag = 4}, kPatienceDuration);
  ASSERT_TRUE(appended.ok()) << appended.status();
  std::vector<v1::Record> records;
  v1::ReadRequest read;
  read.set_log("main");
  ASSERT_TRUE(client_->Read(read, &records).ok());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].payloads(), ElementsAre("a", "bc"));
  EXPECT_EQ(records[0].tag(), 4u);
}

TEST_F(LogClientTest, ConditionThatDoesNotHoldIsAnError) {
  MustAppendBy("a");
  const auto refused = appending_->Append(
      {.parts = {"b"}, .expected_lsn = 2, .only_if_last = false},
      kPatienceDuration);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("LSN 3"));
  MustAppendBy("c");
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "c"));
}

TEST_F(LogClientTest, RequestThatFitsIntoNoRecordIsAnError) {
  const auto refused = appending_->Append(
      {.parts = {std::string(1 << 20, 'x')}}, kPatienceDuration);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  MustAppendBy("a");
}

TEST_F(LogClientTest, ManyRequestsAreUnderWayAndInOrder) {
  std::atomic<int> good = 0;
  std::vector<std::string> expected;
  for (int i = 0; i < 3'000; ++i) {
    expected.push_back(absl::StrCat(i));
    absl::Status taken;
    do {
      taken = appending_->AppendAsync(
          {.parts = {expected.back()}},
          [&](const absl::StatusOr<client::Appended>& answer) {
            good += answer.ok() ? 1 : 0;
          });
      if (absl::IsResourceExhausted(taken)) {
        ASSERT_TRUE(appending_->Flush(kPatienceDuration).ok());
      }
    } while (absl::IsResourceExhausted(taken));
    ASSERT_TRUE(taken.ok()) << taken;
  }
  ASSERT_TRUE(appending_->Flush(kPatienceDuration).ok());
  EXPECT_EQ(good, 3'000);
  EXPECT_THAT(client_->ReadAll(), ElementsAreArray(expected));
}

TEST_F(LogClientTest, CallbackMayAppend) {
  std::atomic<bool> is_done = false;
  ASSERT_TRUE(appending_
                  ->AppendAsync({.parts = {"a"}},
                                [&](const absl::StatusOr<client::Appended>&) {
                                  EXPECT_TRUE(
                                      appending_
                                          ->AppendAsync({.parts = {"b"}},
                                                        [&](const auto&) {
                                                          is_done = true;
                                                        })
                                          .ok());
                                })
                  .ok());
  ASSERT_TRUE(appending_->Flush(kPatienceDuration).ok());
  EXPECT_TRUE(is_done);
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b"));
}

TEST_F(LogClientTest, ClientThatEndsTellsOfWhatIsUnknown) {
  MustAppendBy("a");
  CloseLog();
  std::optional<absl::Status> answer;
  ASSERT_TRUE(
      appending_
          ->AppendAsync({.parts = {"b"}},
                        [&](const auto& told) { answer = told.status(); })
          .ok());
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(appending_->Flush(absl::Milliseconds(1))));
  appending_.reset();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(absl::IsCancelled(*answer)) << *answer;
}

TEST_F(LogClientTest, LogThatNobodyServesIsAnError) {
  MustStart({.addresses = {server_->address()}, .log = "missing"});
  const auto refused = appending_->Append({.parts = {"a"}}, kPatienceDuration);
  EXPECT_TRUE(absl::IsNotFound(refused.status())) << refused.status();
  EXPECT_TRUE(absl::IsNotFound(
      appending_->Append({.parts = {"a"}}, kPatienceDuration).status()));
}

TEST(LogClientOptionsTest, ClientNeedsAnAddress) {
  EXPECT_TRUE(absl::IsInvalidArgument(client::LogClient::Start({}).status()));
}

// A file, so that the log can be opened again.
class LogClientReopenTest : public LogClientTest {
 protected:
  LogClientReopenTest() {
    CloseLog();
    const auto formatted =
        Log::Format({.path = path_, .region_bytes = 4 << 20});
    EXPECT_TRUE(formatted.ok()) << formatted.status();
    OpenLog({.path = path_});
    MustStart({.addresses = {server_->address()}});
  }
  ~LogClientReopenTest() override { CloseLog(); }

  const TempDirectory directory_;
  const std::string path_ = directory_.File("log");
};

TEST_F(LogClientReopenTest, FollowsTheLogToItsNextOpenings) {
  std::vector<std::string> expected;
  for (int opening = 0; opening < 5; ++opening) {
    for (int i = 0; i < 200; ++i) {
      expected.push_back(absl::StrCat(opening, "/", i));
      ASSERT_TRUE(
          appending_
              ->AppendAsync({.parts = {expected.back()}},
                            [](const absl::StatusOr<client::Appended>& answer) {
                              EXPECT_TRUE(answer.ok()) << answer.status();
                            })
              .ok());
    }
    CloseLog();
    OpenLog({.path = path_});
  }
  ASSERT_TRUE(appending_->Flush(kPatienceDuration).ok());
  EXPECT_THAT(client_->ReadAll(), ElementsAreArray(expected));
}

}  // namespace
}  // namespace alpheus::testing
