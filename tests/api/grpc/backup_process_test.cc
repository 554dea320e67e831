// SPDX-License-Identifier: Apache-2.0
// Backups of a log that three daemons keep and serve, while a client appends:
// by the primary, and by `alpheus backup`.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "alpheus/v1/admin_service.grpc.pb.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/api/grpc/log_client.h"
#include "tests/api/grpc/service_cluster_fixture.h"
#include "tests/support/fixtures/patience.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::HasSubstr;

class BackupProcessTest : public ServiceClusterTest {
 protected:
  BackupProcessTest() { asks_for_tokens_ = true; }

  void SetUp() override {
    ServiceClusterTest::SetUp();
    AwaitAllInSync();
    FindPrimary();
    const grpc::Status opened = client_->Open();
    ASSERT_TRUE(opened.ok()) << opened.error_message();
  }

  // A backup on its way from a node.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<v1::AdminService::Stub> stub;
    std::unique_ptr<grpc::ClientReader<v1::BackupResponse>> reader;
    v1::BackupResponse message;
  };
  std::unique_ptr<Call> BeginAt(int node) {
    auto call = std::make_unique<Call>();
    // gRPC keeps little for a client that does not read.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    call->stub = v1::AdminService::NewStub(grpc::CreateCustomChannel(
        addresses_[static_cast<size_t>(node) - 1],
        grpc::InsecureChannelCredentials(), arguments));
    tokens_.Show(&call->context);
    v1::BackupRequest request;
    request.set_log("main");
    call->reader = call->stub->Backup(&call->context, request);
    return call;
  }
  // Takes the rest of it into a file. Sets `end_lsn`.
  grpc::Status Take(Call* call, const std::string& path, uint64_t* end_lsn) {
    std::string bytes;
    bool is_whole = false;
    while (call->reader->Read(&call->message)) {
      const v1::BackupResponse& said = call->message;
      if (said.has_begin()) {
        *end_lsn = said.begin().end_lsn();
        bytes.assign(said.begin().region_bytes(), '\0');
      }
      if (said.has_piece()) {
        const uint64_t needed =
            said.piece().offset() + said.piece().data().size();
        if (bytes.size() < needed) bytes.resize(needed);
        bytes.replace(said.piece().offset(), said.piece().data().size(),
                      said.piece().data());
      }
      is_whole = said.has_end();
    }
    const grpc::Status status = call->reader->Finish();
    EXPECT_EQ(status.ok(), is_whole);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return status;
  }
  demo::ProgramResult OnFile(const std::string& command,
                             const std::string& path,
                             const std::vector<std::string>& more = {}) {
    demo::Program program;
    program.argv = {cluster_->alpheus(), command, "--file", path};
    program.argv.insert(program.argv.end(), more.begin(), more.end());
    const absl::StatusOr<demo::ProgramResult> ran = demo::RunProgram(program);
    EXPECT_TRUE(ran.ok()) << ran.status();
    if (!ran.ok()) return {};
    EXPECT_EQ(ran->end.exit_status, kGood) << ran->output << ran->error;
    return *ran;
  }
  std::string CatFile(const std::string& path) {
    OnFile("verify", path);
    return OnFile("cat", path, {"--framing", "len32"}).output;
  }
  std::string CatLog() {
    return RunWell("cat", {"--log", "main", "--framing", "len32"});
  }
  // How many LSNs a backup has, from LSN 1 on.
  uint64_t LsnsOf(const std::string& path) {
    const std::string lines = OnFile("cat", path, {"--json"}).output;
    return static_cast<uint64_t>(std::ranges::count(lines, '\n'));
  }
  // The same of what is proven of the log.
  uint64_t LsnsOfLog() {
    const std::string lines = RunWell("cat", {"--log", "main", "--json"});
    return static_cast<uint64_t>(std::ranges::count(lines, '\n'));
  }
  std::string File(const std::string& name) const {
    return directory_.File(name);
  }
  uint64_t MustAppend(const std::string& data) {
    v1::AppendResponse response;
    const grpc::Status appended = client_->Append(data, &response);
    EXPECT_TRUE(appended.ok()) << appended.error_message();
    return response.place().lsn();
  }
};

// Each backup is a prefix of the log, and has all that the client knew to be
// durable before it asked.
TEST_F(BackupProcessTest, BackupsUnderLoadArePrefixesOfTheLog) {
  std::atomic<bool> is_over = false;
  std::atomic<uint64_t> durable = 0;
  std::thread appender([&] {
    for (int i = 0; !is_over && i < 20'000; ++i) {
      durable = MustAppend(absl::StrCat("record ", i));
    }
  });
  const Deadline begun = InPatience();
  while (durable < 100 && !begun.HasPassed(Clock::Real().NowNanos())) {
    std::this_thread::yield();
  }
  std::vector<std::string> backups;
  for (int i = 0; i < 3; ++i) {
    uint64_t before = durable;
    uint64_t end = 0;
    const std::string by_primary = File(absl::StrCat("primary", i));
    const grpc::Status sent = Take(BeginAt(primary_).get(), by_primary, &end);
    EXPECT_TRUE(sent.ok()) << sent.error_message();
    EXPECT_GE(end, before);
    EXPECT_EQ(LsnsOf(by_primary), end);
    backups.push_back(CatFile(by_primary));
    before = durable;
    const std::string by_command = File(absl::StrCat("command", i));
    RunWell("backup", {by_command, "--log", "main", "--timeout-ms", "60000"});
    EXPECT_GE(LsnsOf(by_command), before);
    backups.push_back(CatFile(by_command));
  }
  is_over = true;
  appender.join();
  // The log is as long once its last records are proven.
  const Deadline proven = InPatience();
  while (LsnsOfLog() < durable && !proven.HasPassed(Clock::Real().NowNanos())) {
    std::this_thread::yield();
  }
  const std::string log = CatLog();
  for (const std::string& backup : backups) {
    EXPECT_TRUE(absl::StartsWith(log, backup));
  }
}

TEST_F(BackupProcessTest, OtherNodesNameThePrimary) {
  const int other = primary_ == 1 ? 2 : 1;
  const auto call = BeginAt(other);
  EXPECT_FALSE(call->reader->Read(&call->message));
  const grpc::Status status = call->reader->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_details(),
              HasSubstr(addresses_[static_cast<size_t>(primary_) - 1]));
}

// A cleanup moves the head of the next backup, and waits for none.
TEST_F(BackupProcessTest, CleanupBetweenTwoBackups) {
  uint64_t last = 0;
  for (int i = 0; i < 3; ++i) last = MustAppend(std::string(700'000, 'a'));
  const auto slow = BeginAt(primary_);
  ASSERT_TRUE(slow->reader->Read(&slow->message));
  ASSERT_TRUE(slow->message.has_begin());
  grpc::ClientContext context;
  tokens_.Show(&context);
  v1::CleanupRequest clean;
  clean.set_log("main");
  clean.set_through_lsn(last);
  v1::CleanupResponse cleaned;
  const grpc::Status status =
      client_->stub().Cleanup(&context, clean, &cleaned);
  ASSERT_TRUE(status.ok()) << status.error_message();
  uint64_t end = 0;
  EXPECT_EQ(Take(slow.get(), File("slow"), &end).error_code(),
            StatusCode::ABORTED);
  const uint64_t after = MustAppend("after");
  const grpc::Status sent = Take(BeginAt(primary_).get(), File("next"), &end);
  ASSERT_TRUE(sent.ok()) << sent.error_message();
  EXPECT_GE(end, after);
  EXPECT_THAT(CatFile(File("next")), HasSubstr("after"));
}

// The primary is killed in the middle of a backup. The next one has what was
// acknowledged before.
TEST_F(BackupProcessTest, FailOverEndsABackupAndTheNextOneHasAll) {
  for (int i = 0; i < 3; ++i) MustAppend(std::string(700'000, 'a'));
  const uint64_t durable = MustAppend("acknowledged");
  const auto slow = BeginAt(primary_);
  ASSERT_TRUE(slow->reader->Read(&slow->message));
  const int killed = primary_;
  cluster_->Kill(killed);
  uint64_t end = 0;
  EXPECT_EQ(Take(slow.get(), File("slow"), &end).error_code(),
            StatusCode::UNAVAILABLE);
  FindPrimary();
  ASSERT_NE(primary_, killed);
  const grpc::Status sent = Take(BeginAt(primary_).get(), File("next"), &end);
  ASSERT_TRUE(sent.ok()) << sent.error_message();
  EXPECT_GE(end, durable);
  EXPECT_THAT(CatFile(File("next")), HasSubstr("acknowledged"));
  const absl::Status started = cluster_->Start(killed);
  ASSERT_TRUE(started.ok()) << started;
  RunWell("backup",
          {File("command"), "--log", "main", "--timeout-ms", "60000"});
  EXPECT_THAT(CatFile(File("command")), HasSubstr("acknowledged"));
}

// A drained primary gives its log up although a client does not read.
TEST_F(BackupProcessTest, DrainEndsABackup) {
  for (int i = 0; i < 3; ++i) MustAppend(std::string(700'000, 'a'));
  const auto slow = BeginAt(primary_);
  ASSERT_TRUE(slow->reader->Read(&slow->message));
  v1::DrainRequest drain;
  drain.set_log("main");
  v1::DrainResponse drained;
  grpc::ClientContext context;
  tokens_.Show(&context);
  context.set_deadline(gpr_time_from_millis(kPatienceMs, GPR_TIMESPAN));
  const grpc::Status status = slow->stub->Drain(&context, drain, &drained);
  ASSERT_TRUE(status.ok()) << status.error_message();
  uint64_t end = 0;
  EXPECT_EQ(Take(slow.get(), File("slow"), &end).error_code(),
            StatusCode::UNAVAILABLE);
  FindPrimary();
  ASSERT_TRUE(Take(BeginAt(primary_).get(), File("next"), &end).ok());
}

}  // namespace
}  // namespace alpheus::testing
