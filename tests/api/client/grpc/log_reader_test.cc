// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/log_reader.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "alpheus/v1/log_service.grpc.pb.h"
#include "log/base/clock.h"
#include "tests/api/grpc/server_fixture.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

using client::LogReader;
using client::ReadOptions;
using client::Record;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kShort = absl::Milliseconds(1);

// LSN 1 has the client's beginning.
class LogReaderTest : public ServerTest {
 protected:
  LogReaderTest() { MustOpenClient(); }

  std::unique_ptr<LogReader> Start(ReadOptions read) {
    client::LogClientOptions options;
    options.addresses = {server_->address()};
    return Start(std::move(options), std::move(read));
  }
  static std::unique_ptr<LogReader> Start(client::LogClientOptions options,
                                          ReadOptions read) {
    auto reader = LogReader::Start(std::move(options), std::move(read));
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  static std::string NextOf(LogReader& reader) {
    const auto record = reader.Next(kPatienceDuration);
    EXPECT_TRUE(record.ok()) << record.status();
    if (!record.ok()) return "(error)";
    if (!record->has_value()) return "(end)";
    return (*record)->parts.front();
  }
};

TEST_F(LogReaderTest, ReadsToTheLastDurableRecordAndEnds) {
  for (const char* text : {"a", "b", "c"}) MustAppend(text);
  const auto reader = Start({.follows = false});
  EXPECT_EQ(NextOf(*reader), "a");
  MustAppend("later");
  EXPECT_EQ(NextOf(*reader), "b");
  EXPECT_EQ(NextOf(*reader), "c");
  EXPECT_EQ(NextOf(*reader), "(end)");
  EXPECT_EQ(NextOf(*reader), "(end)");
  EXPECT_EQ(reader->next_lsn(), 5u);
}

TEST_F(LogReaderTest, ReadsFromARecordToAnother) {
  for (const char* text : {"a", "b", "c"}) MustAppend(text);
  const auto reader = Start({.from_lsn = 3, .follows = false, .to_lsn = 3});
  const auto record = reader->Next(kPatienceDuration);
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_TRUE(record->has_value());
  EXPECT_EQ((*record)->place, (client::Place{client_->epoch, 3}));
  EXPECT_EQ((*record)->client.lsn, 1u);
  EXPECT_EQ((*record)->sequence, 2u);
  EXPECT_THAT((*record)->parts, ElementsAre("b"));
  EXPECT_EQ(NextOf(*reader), "(end)");
}

TEST_F(LogReaderTest, LocalReadShowsWhatTheNodeHas) {
  for (const char* text : {"a", "b"}) MustAppend(text);
  const auto reader =
      Start({.follows = false, .consistency = client::Consistency::kLocal});
  EXPECT_EQ(NextOf(*reader), "a");
  EXPECT_EQ(NextOf(*reader), "b");
  EXPECT_EQ(NextOf(*reader), "(end)");
}

TEST_F(LogReaderTest, EmptyLogEndsAtOnce) {
  const auto reader = Start({.follows = false});
  EXPECT_EQ(NextOf(*reader), "(end)");
}

TEST_F(LogReaderTest, FollowsRecordsThatCome) {
  const auto reader = Start({});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(reader->Next(kShort).status()));
    MustAppend(absl::StrCat(i));
    EXPECT_EQ(NextOf(*reader), absl::StrCat(i));
  }
}

// A message has 64 KiB at least, so these are many.
TEST_F(LogReaderTest, SmallCreditLetsAllRecordsPass) {
  const auto reader = Start({.credit_bytes = 1});
  for (int i = 0; i < 10; ++i) {
    MustAppend(std::string(50'000, static_cast<char>('a' + i)));
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(NextOf(*reader), std::string(50'000, static_cast<char>('a' + i)));
  }
}

TEST_F(LogReaderTest, CleanedRecordIsAnErrorThatNamesTheHead) {
  MustAppend("a");
  MustAppend("b");
  v1::CleanupRequest request;
  request.set_log("main");
  request.set_through_lsn(2);
  v1::CleanupResponse response;
  grpc::ClientContext context;
  const grpc::Status cleaned =
      client_->stub().Cleanup(&context, request, &response);
  ASSERT_TRUE(cleaned.ok()) << cleaned.error_message();
  const auto reader = Start({.from_lsn = 1});
  const auto record = reader->Next(kPatienceDuration);
  EXPECT_TRUE(absl::IsOutOfRange(record.status())) << record.status();
  EXPECT_EQ(reader->head_lsn(), response.head_lsn());
  const auto next = Start({.from_lsn = reader->head_lsn()});
  EXPECT_EQ(NextOf(*next), "b");
}

TEST_F(LogReaderTest, LogThatNobodyServesIsAnError) {
  client::LogClientOptions options;
  options.addresses = {server_->address()};
  options.log = "missing";
  const auto reader = Start(std::move(options), {});
  EXPECT_TRUE(absl::IsNotFound(reader->Next(kPatienceDuration).status()));
}

TEST_F(LogReaderTest, ReaderThatFindsNoPrimarySaysWhatTheNodesSaid) {
  CloseLog();
  const auto reader = Start({});
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  absl::Status status;
  // Until the node has answered there is nothing to say.
  do {
    status = reader->Next(absl::Milliseconds(100)).status();
    ASSERT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  } while (!absl::StrContains(status.message(), "not primary") &&
           Clock::Real().NowNanos() < end);
  EXPECT_THAT(status.message(), HasSubstr("not primary"));
}

TEST_F(LogReaderTest, CancelEndsAReaderThatWaits) {
  const auto reader = Start({});
  std::thread canceller([&] { reader->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled(reader->Next().status()));
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(reader->Next().status()));
}

TEST_F(LogReaderTest, ReaderThatFollowsHasNoLastRecord) {
  client::LogClientOptions options;
  options.addresses = {server_->address()};
  EXPECT_TRUE(absl::IsInvalidArgument(
      LogReader::Start(options, {.follows = true, .to_lsn = 3}).status()));
  options.addresses.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(LogReader::Start(options, {}).status()));
}

// Is primary when it is asked first, and silent from then on.
class SilentPrimary final : public v1::LogService::Service {
 public:
  explicit SilentPrimary(std::string next) : next_(std::move(next)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~SilentPrimary() override {
    server_->Shutdown(gpr_inf_past(GPR_CLOCK_REALTIME));
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  grpc::Status GetStatus(grpc::ServerContext* /*context*/,
                         const v1::GetStatusRequest* /*request*/,
                         v1::GetStatusResponse* response) override {
    response->set_is_primary(!std::exchange(was_asked_, true));
    response->mutable_primary()->set_address(next_);
    return grpc::Status::OK;
  }
  grpc::Status Tail(grpc::ServerContext* /*context*/,
                    grpc::ServerReaderWriter<v1::TailResponse, v1::TailRequest>*
                        stream) override {
    v1::TailRequest request;
    while (stream->Read(&request)) continue;
    return grpc::Status::OK;
  }

  const std::string next_;
  bool was_asked_ = false;  // one question at a time
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// LGR2.
TEST_F(LogReaderTest, SilentPrimaryIsLeftForTheNextOne) {
  MustAppend("a");
  const SilentPrimary silent(server_->address());
  client::LogClientOptions options;
  options.addresses = {silent.address()};
  options.stall_ms = 20;
  const auto reader = Start(std::move(options), {});
  EXPECT_EQ(NextOf(*reader), "a");
}

// A file, so that the log can be opened again.
class LogReaderReopenTest : public LogReaderTest {
 protected:
  LogReaderReopenTest() {
    CloseLog();
    const auto formatted =
        Log::Format({.path = path_, .region_bytes = 4 << 20});
    EXPECT_TRUE(formatted.ok()) << formatted.status();
    OpenLog({.path = path_});
    MustOpenClient();
  }
  ~LogReaderReopenTest() override { CloseLog(); }

  const TempDirectory directory_;
  const std::string path_ = directory_.File("log");
};

// LGR1.
TEST_F(LogReaderReopenTest, GoesOnWithTheNextOpening) {
  const auto reader = Start({});
  for (int opening = 0; opening < 5; ++opening) {
    MustAppend(absl::StrCat(opening, "/a"));
    EXPECT_EQ(NextOf(*reader), absl::StrCat(opening, "/a"));
    MustAppend(absl::StrCat(opening, "/b"));
    CloseLog();
    OpenLog({.path = path_});
    MustOpenClient();
    EXPECT_EQ(NextOf(*reader), absl::StrCat(opening, "/b"));
  }
}

}  // namespace
}  // namespace alpheus::testing
