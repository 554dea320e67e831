// SPDX-License-Identifier: Apache-2.0
// Tokens at a server: each call with each role, each log, and streams whose
// tokens are revoked.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/v1/admin_service.grpc.pb.h"
#include "tests/api/grpc/health_and_reflection.h"
#include "tests/api/grpc/secure_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Whether a caller was let in, whatever came of it then.
bool IsLetIn(StatusCode code) {
  return code != StatusCode::UNAUTHENTICATED &&
         code != StatusCode::PERMISSION_DENIED;
}

using Call = std::function<grpc::Status(LogClient&, const std::string& log)>;

template <class Service, class Request, class Response>
Call Unary(grpc::Status (Service::*method)(grpc::ClientContext*, const Request&,
                                           Response*)) {
  return [method](LogClient& client, const std::string& log) {
    grpc::ClientContext context;
    client.Authorize(&context);
    Request request;
    request.set_log(log);
    Response response;
    Service stub(client.channel());
    return (stub.*method)(&context, request, &response);
  };
}

grpc::Status AppendByStream(LogClient& client, const std::string& log) {
  v1::AppendStreamRequest::Begin begin;
  begin.set_log(log);
  AppendingStream stream(client, begin);
  return stream.Finish();
}

grpc::Status ReadRecords(LogClient& client, const std::string& log) {
  v1::ReadRequest request;
  request.set_log(log);
  std::vector<v1::Record> records;
  return client.Read(request, &records);
}

grpc::Status TailRecords(LogClient& client, const std::string& log) {
  grpc::ClientContext context;
  client.Authorize(&context);
  const auto stream = client.stub().Tail(&context);
  v1::TailRequest request;
  request.mutable_begin()->set_log(log);
  stream->Write(request);
  stream->WritesDone();
  v1::TailResponse response;
  while (stream->Read(&response)) {
  }
  return stream->Finish();
}

grpc::Status BackUp(LogClient& client, const std::string& log) {
  grpc::ClientContext context;
  client.Authorize(&context);
  v1::BackupRequest request;
  request.set_log(log);
  const auto stub = v1::AdminService::NewStub(client.channel());
  const auto reader = stub->Backup(&context, request);
  v1::BackupResponse response;
  while (reader->Read(&response)) {
  }
  return reader->Finish();
}

// Those of both services, but ListLogs, which is for no log.
const std::map<std::string, Call>& Calls() {
  using Stub = v1::LogService::Stub;
  using Admin = v1::AdminService::Stub;
  static const auto* const calls = new std::map<std::string, Call>{
      {"OpenClient", Unary(&Stub::OpenClient)},
      {"ResumeClient", Unary(&Stub::ResumeClient)},
      {"CloseClient", Unary(&Stub::CloseClient)},
      {"ListClients", Unary(&Stub::ListClients)},
      {"Append", Unary(&Stub::Append)},
      {"AppendStream", AppendByStream},
      {"Resolve", Unary(&Stub::Resolve)},
      {"Force", Unary(&Stub::Force)},
      {"WaitDurable", Unary(&Stub::WaitDurable)},
      {"Read", ReadRecords},
      {"Tail", TailRecords},
      {"Cleanup", Unary(&Stub::Cleanup)},
      {"GetExposure", Unary(&Stub::GetExposure)},
      {"GetStatus", Unary(&Stub::GetStatus)},
      {"DescribeDurability", Unary(&Stub::DescribeDurability)},
      {"ListEpochs", Unary(&Stub::ListEpochs)},
      {"Elect", Unary(&Admin::Elect)},
      {"Drain", Unary(&Admin::Drain)},
      {"Scrub", Unary(&Admin::Scrub)},
      {"Replace", Unary(&Admin::Replace)},
      {"Reconfigure", Unary(&Admin::Reconfigure)},
      {"CreateLog", Unary(&Admin::CreateLog)},
      {"Backup", BackUp},
      {"DeleteLog", Unary(&Admin::DeleteLog)},
  };
  return *calls;
}

class AccessTest : public SecureServerTest {
 protected:
  LogClient ClientWith(const std::string& token) const {
    return LogClient(server_->address(), grpc::InsecureChannelCredentials(),
                     token);
  }
  // Calls that this token may make.
  std::string AllowedWith(const std::string& token, const std::string& log) {
    LogClient client = ClientWith(token);
    std::string allowed;
    for (const auto& [name, call] : Calls()) {
      const grpc::Status status = call(client, log);
      if (IsLetIn(status.error_code())) absl::StrAppend(&allowed, name, " ");
    }
    return allowed;
  }
  void MustReload() {
    const absl::Status reloaded = server_->Reload();
    ASSERT_TRUE(reloaded.ok()) << reloaded;
  }
  void RevokeAll() {
    Write("tokens.toml", "");
    MustReload();
  }
};

constexpr char kAppendCalls[] =
    "Append AppendStream CloseClient Force GetStatus ListClients OpenClient "
    "Resolve ResumeClient ";
constexpr char kReadCalls[] =
    "DescribeDurability GetExposure GetStatus ListEpochs Read Tail "
    "WaitDurable ";
constexpr char kAdminCalls[] =
    "Cleanup CloseClient CreateLog DeleteLog Drain Elect GetStatus "
    "ListClients "
    "Reconfigure Replace Scrub ";

TEST(AccessCallsTest, AreAllOfTheServices) {
  int methods = 0;
  for (const auto* const service :
       {v1::OpenClientRequest::descriptor()->file()->FindServiceByName(
            "LogService"),
        v1::ElectRequest::descriptor()->file()->FindServiceByName(
            "AdminService")}) {
    ASSERT_NE(service, nullptr);
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string& name = service->method(i)->name();
      EXPECT_TRUE(Calls().contains(name) || name == "ListLogs") << name;
    }
    methods += service->method_count();
  }
  EXPECT_EQ(methods, static_cast<int>(Calls().size()) + 1);
}

TEST_F(AccessTest, EachRoleHasItsCalls) {
  const std::string append = AddToken("append", {"append"});
  const std::string read = AddToken("read", {"read"});
  const std::string admin = AddToken("admin", {"admin"});
  const std::string all = AddToken("all", {"append", "read", "admin"});
  MustStart();
  EXPECT_EQ(AllowedWith(append, "main"), kAppendCalls);
  EXPECT_EQ(AllowedWith(read, "main"), kReadCalls);
  EXPECT_EQ(AllowedWith(admin, "main"), kAdminCalls);
  std::string every;
  for (const auto& [name, call] : Calls()) absl::StrAppend(&every, name, " ");
  EXPECT_EQ(AllowedWith(all, "main"), every);
  EXPECT_EQ(AllowedWith("", "main"), "");
  EXPECT_EQ(AllowedWith("alph_0", "main"), "");
}

// A backup is an order, and shows all payloads.
TEST_F(AccessTest, BackupTakesTwoRoles) {
  const std::string two = AddToken("two", {"read", "admin"});
  const std::string append = AddToken("append", {"append", "read"});
  MustStart();
  EXPECT_THAT(AllowedWith(two, "main"), HasSubstr("Backup"));
  EXPECT_THAT(AllowedWith(append, "main"), Not(HasSubstr("Backup")));
}

TEST_F(AccessTest, TokenIsForItsLogs) {
  const std::vector<std::string> roles = {"append", "read", "admin"};
  const std::string mine = AddToken("main", roles, {"main"});
  const std::string others = AddToken("other", roles, {"other", "third"});
  const std::string any = AddToken("any", roles, {"*"});
  MustStart();
  EXPECT_EQ(AllowedWith(mine, "other"), "");
  EXPECT_EQ(AllowedWith(others, "main"), "");
  EXPECT_THAT(AllowedWith(others, "other"), HasSubstr("AppendStream"));
  for (const char* log : {"main", "other", "nosuch"}) {
    EXPECT_THAT(AllowedWith(any, log), HasSubstr("AppendStream"));
  }
  // Nobody else learns which logs there are.
  LogClient client = ClientWith(mine);
  for (const auto& [name, call] : Calls()) {
    const grpc::Status status = call(client, "nosuch");
    EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED) << name;
    EXPECT_EQ(status.error_message(),
              "token \"main\" is not for log nosuch. Ask for a token for that "
              "log");
  }
}

TEST_F(AccessTest, LogsAreListedThatTheTokenIsFor) {
  const std::vector<std::string> all = {"main", "other"};
  const std::map<std::string, std::vector<std::string>> logs_of = {
      {AddToken("main", {"read"}, {"main", "nosuch"}), {"main"}},
      {AddToken("third", {"admin"}, {"third"}), {}},
      {AddToken("any", {"append"}, {"*"}), all}};
  MustStart();
  const auto list = [&](const std::string& token,
                        std::vector<std::string>* names) {
    LogClient client = ClientWith(token);
    grpc::ClientContext context;
    client.Authorize(&context);
    v1::ListLogsResponse listed;
    const grpc::Status status =
        client.stub().ListLogs(&context, v1::ListLogsRequest(), &listed);
    for (const auto& log : listed.logs()) names->push_back(log.name());
    return status.error_code();
  };
  for (const auto& [token, logs] : logs_of) {
    std::vector<std::string> names;
    EXPECT_EQ(list(token, &names), StatusCode::OK);
    EXPECT_THAT(names, ElementsAreArray(logs));
  }
  for (const char* token : {"", "alph_0"}) {
    std::vector<std::string> names;
    EXPECT_EQ(list(token, &names), StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(names, IsEmpty());
  }
}

// ACS3. No message is sent.
TEST_F(AccessTest, StreamsOfStrangersEndBeforeTheyBegin) {
  AddToken("one", {"append", "read"});
  MustStart();
  for (const char* token : {"", "alph_0"}) {
    LogClient client = ClientWith(token);
    grpc::ClientContext appending;
    client.Authorize(&appending);
    appending.set_deadline(gpr_time_from_millis(kPatienceMs, GPR_TIMESPAN));
    EXPECT_EQ(client.stub().AppendStream(&appending)->Finish().error_code(),
              StatusCode::UNAUTHENTICATED);
    grpc::ClientContext tailing;
    client.Authorize(&tailing);
    tailing.set_deadline(gpr_time_from_millis(kPatienceMs, GPR_TIMESPAN));
    EXPECT_EQ(client.stub().Tail(&tailing)->Finish().error_code(),
              StatusCode::UNAUTHENTICATED);
  }
}

TEST_F(AccessTest, ErrorsSayWhatIsMissing) {
  const std::string read = AddToken("eve", {"read"});
  MustStart();
  LogClient client = ClientWith(read);
  const grpc::Status refused = client.Open();
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.error_message(),
            "token \"eve\" has the role read, and this call takes append. Ask "
            "for a token with that role");
  client.token = "";
  const grpc::Status none = client.Open();
  EXPECT_EQ(none.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(none.error_message(), HasSubstr("authorization: Bearer"));
  client.token = read + "0";
  const grpc::Status unknown = client.Open();
  EXPECT_EQ(unknown.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(unknown.error_message(), HasSubstr("is not known here"));
  EXPECT_THAT(unknown.error_message(), Not(HasSubstr(read)));
}

TEST_F(AccessTest, TokenIsShownOnceByTheSchemeBearer) {
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  LogClient client = ClientWith("");
  const auto status_with = [&](const std::vector<std::string>& shown) {
    grpc::ClientContext context;
    for (const std::string& each : shown) {
      context.AddMetadata("authorization", each);
    }
    v1::GetStatusRequest request;
    request.set_log("main");
    v1::GetStatusResponse response;
    return client.stub().GetStatus(&context, request, &response).error_code();
  };
  EXPECT_EQ(status_with({"Bearer " + token}), StatusCode::OK);
  EXPECT_EQ(status_with({"bearer " + token}), StatusCode::OK);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{token},
        {"Basic " + token},
        {"Bearer"},
        {"Bearer " + token, "Bearer " + token},
        {"Bearer " + token + " "}}) {
    EXPECT_EQ(status_with(other), StatusCode::UNAUTHENTICATED) << other.front();
  }
}

TEST_F(AccessTest, ExpiredTokenIsRefused) {
  const std::string token =
      AddToken("brief", {"read"}, {"main"}, "2900-01-01T00:00:00Z");
  clock_.Set(kYear2900 - 1);
  MustStart();
  EXPECT_EQ(AllowedWith(token, "main"), kReadCalls);
  clock_.Set(kYear2900);
  EXPECT_EQ(AllowedWith(token, "main"), "");
  LogClient client = ClientWith(token);
  const grpc::Status expired = client.Open();
  EXPECT_EQ(expired.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(expired.error_message(),
              HasSubstr("token \"brief\" has expired"));
}

TEST_F(AccessTest, WithoutAListAllMayDoEverything) {
  MustStart();
  EXPECT_EQ(AllowedWith("", "main"), AllowedWith("alph_0", "main"));
  EXPECT_THAT(AllowedWith("", "main"), HasSubstr("Cleanup"));
}

TEST_F(AccessTest, HealthNeedsNoTokenAndReflectionAnyOne) {
  const std::string token = AddToken("any", {"admin"}, {"elsewhere"});
  MustStart();
  LogClient stranger = ClientWith("");
  EXPECT_EQ(HealthOf(stranger, "alpheus/main/append"), "serving");
  const std::string method =
      "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  EXPECT_THAT(AnswerOf(stranger, method, ":\1*"), HasSubstr("has no token"));
  LogClient client = ClientWith(token);
  EXPECT_THAT(AnswerOf(client, method, ":\1*"),
              HasSubstr("alpheus.v1.LogService"));
}

// Requests that were sent before are answered; later ones are not appended.
TEST_F(AccessTest, RevokedAppenderEndsInGoodOrder) {
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  AppendingStream stream(client);
  ASSERT_TRUE(stream.Send(1, {"a"}));
  ASSERT_TRUE(stream.ReadUntilDone(1));
  RevokeAll();
  ASSERT_TRUE(stream.Send(2, {"b"}, 2));
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(end.error_message(), HasSubstr("revoked"));
  EXPECT_EQ(stream.answers.last_admitted(), 1u);
  EXPECT_EQ(log_->next_lsn(), Lsn(3));  // the client, and "a"
}

TEST_F(AccessTest, AppenderWithoutItsRoleEndsAndOthersGoOn) {
  const std::string one = AddToken("one", {"append"});
  MustStart();
  LogClient client = ClientWith(one);
  ASSERT_TRUE(client.Open().ok());
  AppendingStream stream(client);
  ASSERT_TRUE(stream.Send(1, {"a"}));
  ASSERT_TRUE(stream.ReadUntilDone(1));
  const std::string two = AddToken("two", {"append", "read"});
  MustReload();
  ASSERT_TRUE(stream.Send(2, {"b"}, 2));
  ASSERT_TRUE(stream.ReadUntilDone(2));
  // The same token, for reading.
  std::string text(AsText(ReadFile(options_.tokens)));
  text.replace(text.find("[\"append\"]"), 10, "[\"read\"]");
  Write("tokens.toml", text);
  MustReload();
  ASSERT_TRUE(stream.Send(3, {"c"}, 3));
  const grpc::Status end = stream.Finish();
  EXPECT_EQ(end.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(stream.answers.last_admitted(), 2u);
  LogClient reader = ClientWith(two);
  EXPECT_THAT(reader.ReadAll(), ElementsAre("a", "b"));
}

TEST_F(AccessTest, AppenderWhoseTokenExpiresEnds) {
  const std::string token =
      AddToken("brief", {"append"}, {"main"}, "2900-01-01T00:00:00Z");
  clock_.Set(kYear2900 - 1);
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  AppendingStream stream(client);
  ASSERT_TRUE(stream.Send(1, {"a"}));
  ASSERT_TRUE(stream.ReadUntilDone(1));
  clock_.Set(kYear2900);
  ASSERT_TRUE(stream.Send(2, {"b"}, 2));
  EXPECT_EQ(stream.Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stream.answers.last_admitted(), 1u);
}

// A request whose bytes take hours at its token's rate: what comes behind it is
// refused, however slow this machine is.
class PacedAccessTest : public AccessTest {
 protected:
  static constexpr rpc::Rates kSlow = {.bytes = 1};
  const std::string large_ = std::string(100'000, 'x');
};

// ACS5, APS7.
TEST_F(PacedAccessTest, RequestsOfAStreamBeyondTheRateAreRefused) {
  const std::string token =
      AddToken("slow", {"append", "read"}, {"main"}, "", kSlow);
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  AppendingStream stream(client);
  ASSERT_TRUE(stream.Send(1, {large_, "b", "c"}));
  const grpc::Status end = stream.Finish();
  EXPECT_TRUE(end.ok()) << end.error_message();
  ASSERT_EQ(stream.answers.done_size(), 1);
  EXPECT_EQ(stream.answers.done(0).count(), 1u);
  ASSERT_EQ(stream.answers.refused_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(stream.answers.refused(i).sequence(),
              static_cast<uint64_t>(i + 2));
    EXPECT_EQ(stream.answers.refused(i).code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(stream.answers.refused(i).message(),
                HasSubstr("used up its rate"));
  }
  // All streams and calls of the token.
  LogClient other = ClientWith(token);
  ASSERT_TRUE(other.Open().ok());
  v1::AppendResponse appended;
  const grpc::Status refused = other.Append("d", &appended);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("token \"slow\" has used up its rate"));
  EXPECT_THAT(other.ReadAll(), ElementsAre(large_));
}

TEST_F(PacedAccessTest, MeterStaysWhereTheRateDoes) {
  const std::string slow = AddToken("slow", {"append"}, {"main"}, "", kSlow);
  MustStart();
  LogClient client = ClientWith(slow);
  ASSERT_TRUE(client.Open().ok());
  v1::AppendResponse appended;
  ASSERT_TRUE(client.Append(large_, &appended).ok());
  AddToken("another", {"append"});
  MustReload();
  EXPECT_EQ(client.Append("b", &appended).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  std::string text(AsText(ReadFile(options_.tokens)));
  constexpr char kRate[] = "bytes_per_second = 1\n";
  ASSERT_THAT(text, HasSubstr(kRate));
  text.erase(text.find(kRate), sizeof(kRate) - 1);
  Write("tokens.toml", text);
  MustReload();
  EXPECT_TRUE(client.Append("b", &appended).ok());
}

TEST_F(PacedAccessTest, OtherTokensGoOn) {
  const std::string slow = AddToken("slow", {"append"}, {"main"}, "", kSlow);
  const std::string fast = AddToken("fast", {"append"});
  MustStart();
  LogClient client = ClientWith(slow);
  ASSERT_TRUE(client.Open().ok());
  v1::AppendResponse appended;
  ASSERT_TRUE(client.Append(large_, &appended).ok());
  LogClient other = ClientWith(fast);
  ASSERT_TRUE(other.Open().ok());
  for (const char* data : {"a", "b", "c"}) {
    EXPECT_TRUE(other.Append(data, &appended).ok());
  }
}

// It learns no record that comes after.
TEST_F(AccessTest, RevokedTailEnds) {
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_millis(kPatienceMs, GPR_TIMESPAN));
  client.Authorize(&context);
  const auto tail = client.stub().Tail(&context);
  v1::TailRequest request;
  request.mutable_begin()->set_log("main");
  ASSERT_TRUE(tail->Write(request));
  request.mutable_credit()->set_bytes(1 << 20);
  ASSERT_TRUE(tail->Write(request));
  AppendingStream stream(client);
  ASSERT_TRUE(stream.Send(1, {"a"}));
  v1::TailResponse response;
  ASSERT_TRUE(tail->Read(&response));
  EXPECT_THAT(response.records(0).payloads(), ElementsAre("a"));
  // Another appender: the first one's stream ends, too.
  const std::string second = AddToken("second", {"append"});
  std::string text(AsText(ReadFile(options_.tokens)));
  Write("tokens.toml", text.substr(text.rfind("[[token]]")));
  MustReload();
  LogClient other = ClientWith(second);
  ASSERT_TRUE(other.Open().ok());
  v1::AppendResponse appended;
  ASSERT_TRUE(other.Append("b", &appended).ok());
  EXPECT_FALSE(tail->Read(&response));
  EXPECT_EQ(tail->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, RevokedTailEndsAtItsNextCredit) {
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  LogClient client = ClientWith(token);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_millis(kPatienceMs, GPR_TIMESPAN));
  client.Authorize(&context);
  const auto tail = client.stub().Tail(&context);
  v1::TailRequest request;
  request.mutable_begin()->set_log("main");
  ASSERT_TRUE(tail->Write(request));
  // The stream has begun once it has sent a record.
  ASSERT_TRUE(client.Open().ok());
  v1::AppendResponse appended;
  ASSERT_TRUE(client.Append("a", &appended).ok());
  request.mutable_credit()->set_bytes(1);
  ASSERT_TRUE(tail->Write(request));
  v1::TailResponse response;
  ASSERT_TRUE(tail->Read(&response));
  RevokeAll();
  ASSERT_TRUE(tail->Write(request));
  EXPECT_FALSE(tail->Read(&response));
  EXPECT_EQ(tail->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

// A reader that is slow, and whose token is revoked meanwhile.
TEST_F(AccessTest, RevokedReadEnds) {
  const std::string token = AddToken("both", {"append", "read"});
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  v1::AppendResponse appended;
  // More than one message, and than what gRPC sends ahead.
  constexpr int kRecords = 6;
  for (int i = 0; i < kRecords; ++i) {
    ASSERT_TRUE(client.Append(std::string(150'000, 'x'), &appended).ok());
  }
  grpc::ClientContext context;
  client.Authorize(&context);
  v1::ReadRequest request;
  request.set_log("main");
  const auto reader = client.stub().Read(&context, request);
  v1::ReadResponse response;
  ASSERT_TRUE(reader->Read(&response));
  RevokeAll();
  int records = response.records_size();
  while (reader->Read(&response)) records += response.records_size();
  EXPECT_LT(records, kRecords);
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

// Goal: BKS2 (backup_stream.h).
TEST_F(AccessTest, RevokedBackupEnds) {
  const std::string token = AddToken("all", {"append", "read", "admin"});
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  v1::AppendResponse appended;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(client.Append(std::string(150'000, 'x'), &appended).ok());
  }
  grpc::ClientContext context;
  client.Authorize(&context);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::AdminService::NewStub(grpc::CreateCustomChannel(
      server_->address(), grpc::InsecureChannelCredentials(), arguments));
  v1::BackupRequest request;
  request.set_log("main");
  const auto reader = stub->Backup(&context, request);
  v1::BackupResponse response;
  ASSERT_TRUE(reader->Read(&response));
  RevokeAll();
  bool is_whole = false;
  while (reader->Read(&response)) is_whole |= response.has_end();
  EXPECT_FALSE(is_whole);
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, BadFileKeepsTheListAndSaysSo) {
  const std::string token = AddToken("one", {"append"});
  MustStart();
  LogClient client = ClientWith(token);
  ASSERT_TRUE(client.Open().ok());
  Write("tokens.toml", "[[token]]\nname = \"half");
  const absl::Status kept = server_->Reload();
  EXPECT_TRUE(absl::IsInvalidArgument(kept)) << kept;
  EXPECT_THAT(std::string(kept.message()),
              HasSubstr("the tokens of before are kept"));
  EXPECT_THAT(std::string(kept.message()), HasSubstr("tokens.toml:2:"));
  EXPECT_TRUE(client.Open().ok());
}

}  // namespace
}  // namespace alpheus::testing
