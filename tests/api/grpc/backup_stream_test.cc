// SPDX-License-Identifier: Apache-2.0
// Backups over gRPC: what comes, who gets one, and how one ends early.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "alpheus/v1/admin_service.grpc.pb.h"
#include "api/grpc/access/crypto.h"
#include "api/grpc/access/token_file.h"
#include "api/grpc/server/log_server.h"
#include "api/service/served/served_logs.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/random.h"
#include "log/base/wall_clock.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kPieceBytesMax = size_t{256} << 10;

class BackupStreamTest : public ::testing::Test {
 protected:
  BackupStreamTest() : logs_({"main", "other"}) {
    for (const char* name : {"admin", "reader", "both", "main-only"}) {
      std::vector<std::string> roles = {"read", "admin"};
      if (name == std::string("admin")) roles = {"admin"};
      if (name == std::string("reader")) roles = {"read"};
      const std::string log = name == std::string("main-only") ? "other" : "*";
      const auto made = rpc::MakeToken(name, roles, {log}, "", entropy_);
      EXPECT_TRUE(made.ok()) << made.status();
      tokens_[name] = made->token;
      EXPECT_TRUE(rpc::AddToTokenFile(token_file(), made->entry).ok());
    }
    auto log = Log::Open({.anonymous_bytes = 4 << 20, .idle_force_us = 0});
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    EXPECT_TRUE(logs_.Serve("main", *log_).ok());
    Start(token_file());
  }
  ~BackupStreamTest() override {
    logs_.Withdraw("main");
    log_.reset();
  }

  std::string token_file() const { return directory_.File("tokens.toml"); }
  void Start(const std::string& tokens) {
    server_.reset();
    auto server =
        rpc::LogServer::Start({.listen = "127.0.0.1:0", .tokens = tokens},
                              logs_, {}, WallClock::Real(), nullptr);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    // Otherwise gRPC measures how much it may keep for a client that reads
    // slowly, which is megabytes on loopback.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = v1::AdminService::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), arguments));
  }
  void Append(const std::string& text) {
    const auto lsn = log_->Append(text);
    ASSERT_TRUE(lsn.ok()) << lsn.status();
  }

  // Returns whether so many streams come to have ended so. They are counted a
  // moment after their clients know.
  bool HasCounted(StatusCode code, uint64_t count) const {
    const Deadline end = InPatience();
    while (server_->counts().ended(rpc::Method::kBackup, code) != count) {
      if (end.HasPassed(Clock::Real().NowNanos())) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // A backup on its way.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::BackupResponse>> reader;
    v1::BackupResponse message;
  };
  std::unique_ptr<Call> Begin(const std::string& log = "main",
                              const std::string& token = "both") {
    auto call = std::make_unique<Call>();
    if (!token.empty()) {
      call->context.AddMetadata("authorization",
                                absl::StrCat("Bearer ", tokens_[token]));
    }
    v1::BackupRequest request;
    request.set_log(log);
    call->reader = stub_->Backup(&call->context, request);
    return call;
  }
  // Takes the rest of a backup, and checks its form. Returns the status.
  grpc::Status Take(Call* call) {
    rpc::Sha256OfParts sum;
    uint64_t pieces = 0;
    bool is_whole = false;
    while (call->reader->Read(&call->message)) {
      EXPECT_FALSE(is_whole) << "nothing comes after the end";
      if (call->message.has_begin()) {
        EXPECT_TRUE(bytes_.empty()) << "it comes first, and once";
        begin_ = call->message.begin();
        bytes_.assign(begin_.region_bytes(), '\0');
      } else if (call->message.has_piece()) {
        const v1::BackupResponse::Piece& piece = call->message.piece();
        EXPECT_LE(piece.data().size(), kPieceBytesMax);
        EXPECT_GT(piece.data().size(), 0U);
        EXPECT_LE(piece.offset() + piece.data().size(), bytes_.size());
        bytes_.replace(piece.offset(), piece.data().size(), piece.data());
        const uint64_t offset = piece.offset();
        std::string number(sizeof(offset), '\0');
        std::memcpy(number.data(), &offset, sizeof(offset));
        sum.Add(number);
        sum.Add(piece.data());
        ++pieces;
      } else {
        is_whole = true;
        const quorum::Digest digest = sum.Finish();
        EXPECT_EQ(call->message.end().pieces(), pieces);
        EXPECT_EQ(call->message.end().sha256(), AsText(digest));
      }
    }
    pieces_ = pieces;
    const grpc::Status status = call->reader->Finish();
    EXPECT_EQ(status.ok(), is_whole);  // BKS3
    return status;
  }
  std::vector<std::string> Records() const {
    const std::string path = directory_.File("backup");
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes_;
    std::vector<std::string> records;
    const auto reader = LogReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return records;
    const absl::Status read =
        (*reader)->ForEach([&](const ReaderRecord& record) {
          EXPECT_EQ(record.lsn.value, begin_.head_lsn() + records.size());
          records.emplace_back(AsText(record.payload));
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return records;
  }

  const TempDirectory directory_;
  EntropyRandom entropy_;
  std::map<std::string, std::string> tokens_;
  service::ServedLogs logs_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<rpc::LogServer> server_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
  v1::BackupResponse::Begin begin_;
  std::string bytes_;
  uint64_t pieces_ = 0;
};

TEST_F(BackupStreamTest, BackupSaysWhatItIsAndHasAllRecords) {
  Append("one");
  Append("two");
  const auto call = Begin();
  const grpc::Status status = Take(call.get());
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(begin_.log(), "main");
  EXPECT_EQ(begin_.log_id(), log_->report().log_id.ToString());
  EXPECT_EQ(begin_.epoch(), log_->report().epoch.value);
  EXPECT_EQ(begin_.head_lsn(), 1U);
  EXPECT_EQ(begin_.end_lsn(), 2U);
  EXPECT_THAT(Records(), ElementsAre("one", "two"));
  EXPECT_TRUE(HasCounted(StatusCode::OK, 1));
  EXPECT_EQ(server_->counts().open_streams(rpc::Method::kBackup), 0U);
}

TEST_F(BackupStreamTest, EmptyLogHasABackup) {
  const auto call = Begin();
  ASSERT_TRUE(Take(call.get()).ok());
  EXPECT_EQ(begin_.end_lsn() + 1, begin_.head_lsn());
  EXPECT_THAT(Records(), IsEmpty());
}

// A record of more than a message is cut into several pieces, and small ones
// share a piece.
TEST_F(BackupStreamTest, PiecesAreFullAndBounded) {
  std::vector<std::string> kept = {std::string(1'000'000, 'a')};
  for (int i = 0; i < 10'000; ++i) kept.push_back(absl::StrCat(i));
  for (const std::string& text : kept) Append(text);
  const auto call = Begin();
  const grpc::Status status = Take(call.get());
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Records(), kept);
  // Seven of records, and the pages before the ring.
  EXPECT_LT(pieces_, 20U);
}

// BKC5 (backup_composer.h): a backup that is cut off before its last piece is
// no region.
TEST_F(BackupStreamTest, LastPieceIsTheSuperline) {
  Append("one");
  const auto call = Begin();
  uint64_t last = 1;
  while (call->reader->Read(&call->message)) {
    if (call->message.has_piece()) last = call->message.piece().offset();
  }
  EXPECT_TRUE(call->reader->Finish().ok());
  EXPECT_EQ(last, 0U);
}

TEST_F(BackupStreamTest, AppendsGoOnMeanwhileAndAreNotInIt) {
  for (int i = 0; i < 3; ++i) Append(std::string(900'000, 'a'));
  const auto call = Begin();
  ASSERT_TRUE(call->reader->Read(&call->message));
  ASSERT_TRUE(call->message.has_begin());
  begin_ = call->message.begin();
  bytes_.assign(begin_.region_bytes(), '\0');
  // The client reads no more, and nobody waits for it.
  Append("late");
  const grpc::Status status = Take(call.get());
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(begin_.end_lsn(), 3U);
  EXPECT_EQ(Records().size(), 3U);
}

// LBK2 (log_backup.h): the ring does not run full behind a client that does not
// read.
TEST_F(BackupStreamTest, CleanupThatOvertakesASlowClientEndsItsBackup) {
  for (int i = 0; i < 3; ++i) Append(std::string(900'000, 'a'));
  const auto call = Begin();
  ASSERT_TRUE(call->reader->Read(&call->message));
  // gRPC keeps less than a record for a client that does not read.
  ASSERT_TRUE(log_->CleanupThrough(Lsn(3)).ok());
  for (int i = 0; i < 20; ++i) {
    Append(std::string(900'000, 'b'));
    ASSERT_TRUE(log_->CleanupThrough(log_->durable_lsn()).ok());
  }
  bytes_.assign(call->message.begin().region_bytes(), '\0');
  const grpc::Status status = Take(call.get());
  EXPECT_EQ(status.error_code(), StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("cleaned before it was read"));
  EXPECT_TRUE(HasCounted(StatusCode::ABORTED, 1));
}

// ADC1, and a backup shows all records.
TEST_F(BackupStreamTest, CallerNeedsBothRolesForTheLog) {
  Append("one");
  const auto code_of = [this](const std::string& token) {
    const auto call = Begin("main", token);
    EXPECT_FALSE(call->reader->Read(&call->message));
    return call->reader->Finish().error_code();
  };
  EXPECT_EQ(code_of("admin"), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code_of("reader"), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code_of("main-only"), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(code_of(""), StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(HasCounted(StatusCode::PERMISSION_DENIED, 3));
}

TEST_F(BackupStreamTest, NodeWithoutTokensSendsNone) {
  Start("");
  const auto call = Begin();
  EXPECT_FALSE(call->reader->Read(&call->message));
  const grpc::Status status = call->reader->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("Give alpheusd --tokens"));
}

TEST_F(BackupStreamTest, OtherNodesNameThePrimary) {
  logs_.SetAddresses({{2, "192.0.2.2:7411"}});
  logs_.SetFindPrimary(
      "other", [] { return PrimaryReport{.node = 2, .epoch = Epoch(5)}; });
  const auto call = Begin("other");
  EXPECT_FALSE(call->reader->Read(&call->message));
  const grpc::Status status = call->reader->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_details(), HasSubstr("192.0.2.2:7411"));
  const auto unknown = Begin("unknown");
  EXPECT_FALSE(unknown->reader->Read(&unknown->message));
  EXPECT_EQ(unknown->reader->Finish().error_code(), StatusCode::NOT_FOUND);
}

// Goal: BKS1. The log is given back although its client reads no more.
TEST_F(BackupStreamTest, DrainedLogEndsTheBackup) {
  for (int i = 0; i < 3; ++i) Append(std::string(900'000, 'a'));
  const auto call = Begin();
  ASSERT_TRUE(call->reader->Read(&call->message));
  const std::future<void> withdrawn =
      std::async(std::launch::async, [this] { logs_.Withdraw("main"); });
  const bool is_left =
      withdrawn.wait_for(kPatience) == std::future_status::ready;
  EXPECT_TRUE(is_left) << "the log waits for a client that does not read";
  if (!is_left) call->context.TryCancel();
  withdrawn.wait();
  bytes_.assign(call->message.begin().region_bytes(), '\0');
  const grpc::Status status = Take(call.get());
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(logs_.Serve("main", *log_).ok());
}

TEST_F(BackupStreamTest, ClientMayGoAway) {
  for (int i = 0; i < 3; ++i) Append(std::string(900'000, 'a'));
  const auto call = Begin();
  ASSERT_TRUE(call->reader->Read(&call->message));
  call->context.TryCancel();
  while (call->reader->Read(&call->message)) {
  }
  EXPECT_EQ(call->reader->Finish().error_code(), StatusCode::CANCELLED);
  logs_.Withdraw("main");  // waits for the stream
  EXPECT_TRUE(logs_.Serve("main", *log_).ok());
}

}  // namespace
}  // namespace alpheus::testing
