// SPDX-License-Identifier: Apache-2.0
// Every call of the API, and every error of it, on a log of this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/api/grpc/server_fixture.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LogCallsTest = ServerTest;

TEST_F(LogCallsTest, WhatIsAppendedIsRead) {
  MustOpenClient();
  const v1::AppendResponse first = MustAppend("a");
  const v1::AppendResponse second = MustAppend("b");
  EXPECT_EQ(first.place().lsn(), client_->client.lsn() + 1);
  EXPECT_EQ(second.place().lsn(), client_->client.lsn() + 2);
  EXPECT_EQ(second.place().epoch(), client_->epoch);
  EXPECT_EQ(second.durable_lsn(), second.place().lsn());
  EXPECT_FALSE(second.repeated());
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b"));
}

// Its answer was lost, and it asks again.
TEST_F(LogCallsTest, ClientThatAsksAgainByItsKeyIsTheSame) {
  const auto open = [&](const std::string& key) {
    grpc::ClientContext context;
    v1::OpenClientRequest request;
    request.set_log("main");
    request.set_key(key);
    v1::OpenClientResponse opened;
    const grpc::Status status =
        client_->stub().OpenClient(&context, request, &opened);
    EXPECT_EQ(status.ok(), key.size() == 16 || key.empty());
    if (!status.ok()) {
      EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
      EXPECT_THAT(status.error_message(), HasSubstr("a key of "));
    }
    EXPECT_EQ(opened.epoch() != 0, status.ok());
    return opened.client().lsn();
  };
  const std::string key(16, '\0');
  const uint64_t first = open(key);
  EXPECT_EQ(open(key), first);
  EXPECT_NE(open(std::string(16, 'x')), first);
  EXPECT_NE(open(""), open(""));
  for (const size_t size : {1, 15, 17}) open(std::string(size, 'x'));
  EXPECT_EQ(logs_.Use("main")->service().clients(), 4u);
}

TEST_F(LogCallsTest, RepeatGetsItsFirstAnswer) {
  MustOpenClient();
  const v1::AppendResponse first = MustAppend("a");
  v1::AppendResponse again;
  EXPECT_TRUE(client_->Append(client_->Request(1, "a"), &again).ok());
  EXPECT_TRUE(again.repeated());
  EXPECT_EQ(again.place().lsn(), first.place().lsn());
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a"));
}

TEST_F(LogCallsTest, BatchIsOneRecord) {
  MustOpenClient();
  v1::AppendRequest request = client_->Request("");
  for (const char* one : {"x", "", "z"}) {
    request.mutable_payload()->add_batch(one);
  }
  request.mutable_payload()->set_tag(7);
  v1::AppendResponse response;
  ASSERT_TRUE(client_->Append(request, &response).ok());
  std::vector<v1::Record> records;
  v1::ReadRequest read;
  read.set_log("main");
  ASSERT_TRUE(client_->Read(read, &records).ok());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].payloads(), ElementsAre("x", "", "z"));
  EXPECT_EQ(records[0].tag(), 7u);
  EXPECT_EQ(records[0].sequence(), 1u);
  EXPECT_EQ(records[0].client().lsn(), client_->client.lsn());
  EXPECT_EQ(records[0].place().lsn(), response.place().lsn());
}

TEST_F(LogCallsTest, UnknownLogIsNotFound) {
  v1::AppendRequest request = client_->Request("a");
  request.set_log("nosuch");
  v1::AppendResponse response;
  const grpc::Status status = client_->Append(request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("log nosuch"));
}

// Each call refuses a log that is not here in the same way.
TEST_F(LogCallsTest, LogOfAnotherPrimaryIsUnavailableWithItsName) {
  logs_.SetFindPrimary("other", [] {
    return PrimaryReport{.node = 3, .epoch = Epoch(196'610)};
  });
  const auto expect = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
    const v1::RequestError error = ErrorIn(status);
    ASSERT_TRUE(error.has_not_primary());
    EXPECT_EQ(error.not_primary().node(), 3u);
    EXPECT_EQ(error.not_primary().epoch(), 196'610u);
  };
  const auto call = [&](auto method, auto request, auto response) {
    grpc::ClientContext context;
    request.set_log("other");
    expect((client_->stub().*method)(&context, request, &response));
  };
  using Stub = v1::LogService::Stub;
  call(&Stub::OpenClient, v1::OpenClientRequest(), v1::OpenClientResponse());
  call(&Stub::CloseClient, v1::CloseClientRequest(), v1::CloseClientResponse());
  call(&Stub::Append, v1::AppendRequest(), v1::AppendResponse());
  call(&Stub::ResumeClient, v1::ResumeClientRequest(),
       v1::ResumeClientResponse());
  call(&Stub::Resolve, v1::ResolveRequest(), v1::ResolveResponse());
  call(&Stub::Force, v1::ForceRequest(), v1::ForceResponse());
  call(&Stub::WaitDurable, v1::WaitDurableRequest(), v1::WaitDurableResponse());
  call(&Stub::Cleanup, v1::CleanupRequest(), v1::CleanupResponse());
  call(&Stub::GetExposure, v1::GetExposureRequest(), v1::GetExposureResponse());
  call(&Stub::DescribeDurability, v1::DescribeDurabilityRequest(),
       v1::DescribeDurabilityResponse());
  call(&Stub::ListEpochs, v1::ListEpochsRequest(), v1::ListEpochsResponse());
  v1::ReadRequest read;
  read.set_log("other");
  std::vector<v1::Record> records;
  expect(client_->Read(read, &records));
  v1::AppendStreamRequest::Begin begin;
  begin.set_log("other");
  AppendingStream stream(*client_, begin);
  expect(stream.Finish());
}

TEST_F(LogCallsTest, StatusSaysWhoIsPrimary) {
  MustOpenClient();
  MustAppend("a");
  grpc::ClientContext context;
  v1::GetStatusRequest request;
  request.set_log("main");
  v1::GetStatusResponse here;
  ASSERT_TRUE(client_->stub().GetStatus(&context, request, &here).ok());
  EXPECT_TRUE(here.is_primary());
  EXPECT_EQ(here.epoch(), client_->epoch);
  EXPECT_EQ(here.clients(), 1u);
  EXPECT_EQ(here.head_lsn(), 1u);
  EXPECT_EQ(here.durable_lsn(), 2u);
  EXPECT_EQ(here.next_lsn(), 3u);
  EXPECT_EQ(here.max_payload_bytes(), log_->payload_bytes_max() / 2 - 32);
  EXPECT_EQ(here.replicas().count(), 1u);
  EXPECT_EQ(here.replicas().write_quorum(), 1u);
  EXPECT_EQ(here.replicas().in_sync(), 1u);
  EXPECT_THAT(here.replicas().out_of_sync(), IsEmpty());
  logs_.SetFindPrimary(
      "other", [] { return PrimaryReport{.node = 2, .epoch = Epoch(5)}; });
  logs_.SetAddresses({{1, "one:7"}, {2, "two:7"}});
  grpc::ClientContext second;
  request.set_log("other");
  v1::GetStatusResponse elsewhere;
  ASSERT_TRUE(client_->stub().GetStatus(&second, request, &elsewhere).ok());
  EXPECT_FALSE(elsewhere.is_primary());
  EXPECT_EQ(elsewhere.primary().node(), 2u);
  EXPECT_EQ(elsewhere.primary().address(), "two:7");
  grpc::ClientContext third;
  request.set_log("nosuch");
  EXPECT_EQ(client_->stub().GetStatus(&third, request, &elsewhere).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(LogCallsTest, ClientsThatHaveNotEndedAreListed) {
  std::vector<v1::Place> names;
  for (int i = 0; i < 3; ++i) {
    MustOpenClient();
    client_->next = 1;
    names.push_back(client_->client);
  }
  const v1::AppendResponse last = MustAppend("a");  // of the third one
  const auto list = [&](const v1::Place* after, uint32_t max) {
    grpc::ClientContext context;
    v1::ListClientsRequest request;
    request.set_log("main");
    if (after != nullptr) *request.mutable_after() = *after;
    request.set_max(max);
    v1::ListClientsResponse listed;
    const grpc::Status status =
        client_->stub().ListClients(&context, request, &listed);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return listed;
  };
  v1::ListClientsResponse listed = list(nullptr, 0);
  ASSERT_EQ(listed.clients_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(listed.clients(i).client().lsn(), names[i].lsn());
  }
  EXPECT_EQ(listed.clients(0).last_sequence(), 0u);
  EXPECT_EQ(listed.clients(0).last_place().lsn(), names[0].lsn());
  EXPECT_EQ(listed.clients(2).last_sequence(), 1u);
  EXPECT_EQ(listed.clients(2).last_place().lsn(), last.place().lsn());
  listed = list(&names[0], 1);
  ASSERT_EQ(listed.clients_size(), 1);
  EXPECT_EQ(listed.clients(0).client().lsn(), names[1].lsn());
  // As an operator ends one whose program is gone.
  grpc::ClientContext context;
  v1::CloseClientRequest close;
  close.set_log("main");
  close.set_epoch(client_->epoch);
  *close.mutable_client() = names[1];
  v1::CloseClientResponse closed;
  ASSERT_TRUE(client_->stub().CloseClient(&context, close, &closed).ok());
  listed = list(&names[0], 0);
  ASSERT_EQ(listed.clients_size(), 1);
  EXPECT_EQ(listed.clients(0).client().lsn(), names[2].lsn());
  grpc::ClientContext second;
  v1::ListClientsRequest request;
  request.set_log("main");
  request.set_max(10'001);
  EXPECT_EQ(client_->stub().ListClients(&second, request, &listed).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(LogCallsTest, NodeListsTheLogsForWhichItStands) {
  grpc::ClientContext context;
  v1::ListLogsResponse listed;
  ASSERT_TRUE(
      client_->stub().ListLogs(&context, v1::ListLogsRequest(), &listed).ok());
  ASSERT_EQ(listed.logs_size(), 2);
  EXPECT_EQ(listed.logs(0).name(), "main");
  EXPECT_TRUE(listed.logs(0).is_primary());
  EXPECT_EQ(listed.logs(1).name(), "other");
  EXPECT_FALSE(listed.logs(1).is_primary());
}

TEST_F(LogCallsTest, RequestForAnotherOpeningIsToldThisOne) {
  MustOpenClient();
  v1::AppendRequest request = client_->Request("a");
  request.set_epoch(client_->epoch + 1);
  v1::AppendResponse response;
  const grpc::Status status = client_->Append(request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ErrorIn(status).wrong_epoch().epoch(), client_->epoch);
  EXPECT_THAT(client_->ReadAll(), IsEmpty());
}

TEST_F(LogCallsTest, RequestBeforeItsTurnIsOutOfOrder) {
  MustOpenClient();
  v1::AppendRequest request = client_->Request(3, "c");
  request.mutable_number()->set_lowest_unanswered(1);
  v1::AppendResponse response;
  const grpc::Status status = client_->Append(request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ErrorIn(status).out_of_order().expected_sequence(), 1u);
}

TEST_F(LogCallsTest, ConditionThatDoesNotHoldNamesTheNextLsn) {
  MustOpenClient();
  const v1::AppendResponse first = MustAppend("a");
  v1::AppendRequest request = client_->Request("b");
  request.mutable_payload()->set_expected_lsn(first.place().lsn());
  v1::AppendResponse response;
  const grpc::Status status = client_->Append(request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  const uint64_t next = ErrorIn(status).tail_mismatch().next_lsn();
  EXPECT_EQ(next, first.place().lsn() + 1);
  request.mutable_payload()->set_expected_lsn(next);
  EXPECT_TRUE(client_->Append(request, &response).ok());
  ++client_->next;
  request = client_->Request("c");
  request.mutable_payload()->set_only_if_last(true);
  EXPECT_TRUE(client_->Append(request, &response).ok());
  LogClient other(server_->address());
  ASSERT_TRUE(other.Open().ok());
  ++client_->next;
  request = client_->Request("d");
  request.mutable_payload()->set_only_if_last(true);
  EXPECT_TRUE(ErrorIn(client_->Append(request, &response)).has_tail_mismatch());
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b", "c"));
}

TEST_F(LogCallsTest, PayloadThatFitsIntoNoRecordIsInvalid) {
  MustOpenClient();
  v1::AppendResponse response;
  const grpc::Status status =
      client_->Append(std::string(700'000, 'x'), &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("fits into no record"));
}

TEST_F(LogCallsTest, NumberThatNoClientGivesIsInvalid) {
  MustOpenClient();
  v1::AppendResponse response;
  EXPECT_EQ(client_->Append(client_->Request(0, "a"), &response).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(LogCallsTest, EachDurabilityIsWaitedFor) {
  MustOpenClient();
  for (const v1::Durability durability :
       {v1::DURABILITY_UNSPECIFIED, v1::DURABILITY_LOCAL, v1::DURABILITY_QUORUM,
        v1::DURABILITY_ALL}) {
    v1::AppendRequest request = client_->Request("a");
    request.set_durability(durability);
    v1::AppendResponse response;
    ASSERT_TRUE(client_->Append(request, &response).ok());
    // A log of one machine: all of them are the same.
    EXPECT_GE(response.durable_lsn(), response.place().lsn());
    ++client_->next;
  }
}

TEST_F(LogCallsTest, DurabilityThatThereIsNotIsInvalid) {
  MustOpenClient();
  v1::AppendRequest request = client_->Request("a");
  v1::AppendResponse response;
  request.set_durability(static_cast<v1::Durability>(17));
  EXPECT_EQ(client_->Append(request, &response).error_code(),
            StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(client_->ReadAll(), IsEmpty());
}

// Nobody forces here.
TEST_F(LogCallsTest, AcceptedIsAnsweredBeforeItIsDurable) {
  MustOpenClient();
  v1::AppendRequest request = client_->Request("a");
  request.set_durability(v1::DURABILITY_ACCEPTED);
  v1::AppendResponse response;
  ASSERT_TRUE(client_->Append(request, &response).ok());
  EXPECT_LT(response.durable_lsn(), response.place().lsn());
  grpc::ClientContext context;
  v1::GetExposureRequest exposure;
  exposure.set_log("main");
  v1::GetExposureResponse exposed;
  ASSERT_TRUE(client_->stub().GetExposure(&context, exposure, &exposed).ok());
  EXPECT_EQ(exposed.records(), 1u);
  EXPECT_EQ(exposed.records_max(), log_->ExposedMax());
  grpc::ClientContext second;
  v1::ForceRequest force;
  force.set_log("main");
  *force.mutable_place() = response.place();
  v1::ForceResponse forced;
  ASSERT_TRUE(client_->stub().Force(&second, force, &forced).ok());
  EXPECT_EQ(forced.durable_lsn(), response.place().lsn());
  grpc::ClientContext third;
  v1::WaitDurableRequest wait;
  wait.set_log("main");
  *wait.mutable_place() = response.place();
  v1::WaitDurableResponse waited;
  ASSERT_TRUE(client_->stub().WaitDurable(&third, wait, &waited).ok());
  EXPECT_EQ(waited.durable_lsn(), response.place().lsn());
}

TEST_F(LogCallsTest, PlaceThatIsNotInTheLogIsOutOfRange) {
  MustOpenClient();
  const v1::AppendResponse first = MustAppend("a");
  const auto force = [&](uint64_t epoch, uint64_t lsn) {
    grpc::ClientContext context;
    v1::ForceRequest request;
    request.set_log("main");
    request.mutable_place()->set_epoch(epoch);
    request.mutable_place()->set_lsn(lsn);
    v1::ForceResponse response;
    return client_->stub().Force(&context, request, &response);
  };
  const uint64_t lsn = first.place().lsn();
  EXPECT_TRUE(force(client_->epoch, lsn).ok());
  const grpc::Status other = force(client_->epoch - 1, lsn);
  EXPECT_EQ(other.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ErrorIn(other).out_of_log().head_lsn(), 1u);
  EXPECT_EQ(force(client_->epoch, lsn + 1).error_code(),
            StatusCode::OUT_OF_RANGE);
  grpc::ClientContext context;
  v1::WaitDurableRequest wait;
  wait.set_log("main");
  wait.mutable_place()->set_lsn(lsn + 1);
  v1::WaitDurableResponse waited;
  EXPECT_EQ(client_->stub().WaitDurable(&context, wait, &waited).error_code(),
            StatusCode::OUT_OF_RANGE);
}

TEST_F(LogCallsTest, ClientThatHasEndedAppendsNoMore) {
  MustOpenClient();
  MustAppend("a");
  grpc::ClientContext context;
  v1::CloseClientRequest close;
  close.set_log("main");
  close.set_epoch(client_->epoch);
  *close.mutable_client() = client_->client;
  v1::CloseClientResponse closed;
  ASSERT_TRUE(client_->stub().CloseClient(&context, close, &closed).ok());
  EXPECT_EQ(closed.place().lsn(), 3u);
  v1::AppendResponse response;
  const grpc::Status refused =
      client_->Append(client_->Request("b"), &response);
  EXPECT_EQ(refused.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(ErrorIn(refused).has_client_ended());
  client_->client.set_lsn(1'000);
  EXPECT_EQ(client_->Append(client_->Request("b"), &response).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(LogCallsTest, ResolveSaysWhatBecameOfARequest) {
  MustOpenClient();
  MustAppend("a");
  v1::ResolveResponse response;
  ASSERT_TRUE(client_->Resolve(1, client_->epoch, &response).ok());
  EXPECT_EQ(response.outcome(), v1::ResolveResponse::OUTCOME_DURABLE);
  EXPECT_EQ(response.place().lsn(), 2u);
  EXPECT_EQ(response.epoch(), client_->epoch);
  ASSERT_TRUE(client_->Resolve(2, client_->epoch, &response).ok());
  EXPECT_EQ(response.outcome(), v1::ResolveResponse::OUTCOME_NEVER);
  // It was sent before, and comes late.
  v1::AppendResponse appended;
  const grpc::Status late =
      client_->Append(client_->Request(2, "b"), &appended);
  EXPECT_EQ(late.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(ErrorIn(late).has_superseded());
  client_->resumption = response.resumption();
  EXPECT_TRUE(client_->Append(client_->Request(2, "b"), &appended).ok());
  // This primary can't know of a later epoch.
  EXPECT_EQ(client_->Resolve(3, client_->epoch + 1, &response).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(client_->Resolve(0, client_->epoch, &response).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(LogCallsTest, ResumedClientLearnsPlacesAndGoesOn) {
  MustOpenClient();
  for (const char* text : {"a", "b", "c"}) MustAppend(text);
  v1::ResumeClientResponse response;
  ASSERT_TRUE(client_->Resume(3, client_->epoch, &response).ok());
  EXPECT_EQ(response.last_sequence(), 3u);
  EXPECT_FALSE(response.ended());
  EXPECT_EQ(response.resumption(), 1u);
  ASSERT_EQ(response.places_size(), 1);
  EXPECT_EQ(response.places(0).first_sequence(), 3u);
  EXPECT_EQ(response.places(0).count(), 1u);
  EXPECT_EQ(response.places(0).first().lsn(), 4u);
  MustAppend("d");
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(client_->Resume(1, client_->epoch + 1, &response).error_code(),
            StatusCode::UNAVAILABLE);
  client_->client.set_lsn(1'000);
  EXPECT_EQ(client_->Resume(1, client_->epoch, &response).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(LogCallsTest, ReadsTheRangeAndTheTagsThatAreAskedFor) {
  MustOpenClient();
  for (uint32_t i = 0; i < 6; ++i) {
    v1::AppendRequest request = client_->Request(std::to_string(i));
    request.mutable_payload()->set_tag(i % 3);
    v1::AppendResponse response;
    ASSERT_TRUE(client_->Append(request, &response).ok());
    ++client_->next;
  }
  v1::ReadRequest request;
  request.set_log("main");
  request.add_tags(1);
  request.add_tags(2);
  request.set_from_lsn(3);
  request.set_to_lsn(6);
  std::vector<v1::Record> records;
  ASSERT_TRUE(client_->Read(request, &records).ok());
  std::vector<uint64_t> lsns;
  for (const v1::Record& record : records) lsns.push_back(record.place().lsn());
  EXPECT_THAT(lsns, ElementsAre(3, 4, 6));
  request.set_to_lsn(100);
  EXPECT_EQ(client_->Read(request, &records).error_code(),
            StatusCode::OUT_OF_RANGE);
}

// A log of one machine: its lock says that nobody else has it open.
TEST_F(LogCallsTest, ConsistencyIsAsAsked) {
  MustOpenClient();
  MustAppend("a");
  v1::ReadRequest request;
  request.set_log("main");
  for (const v1::Consistency consistency :
       {v1::CONSISTENCY_UNSPECIFIED, v1::CONSISTENCY_LINEARIZABLE,
        v1::CONSISTENCY_LOCAL}) {
    request.set_consistency(consistency);
    std::vector<v1::Record> records;
    ASSERT_TRUE(client_->Read(request, &records).ok());
    EXPECT_EQ(records.size(), 1U);
  }
  request.set_consistency(static_cast<v1::Consistency>(99));
  std::vector<v1::Record> records;
  const grpc::Status refused = client_->Read(request, &records);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("consistency 99"));
  v1::GetStatusRequest about;
  about.set_log("main");
  for (const bool confirm : {false, true}) {
    about.set_confirm(confirm);
    grpc::ClientContext context;
    v1::GetStatusResponse status;
    ASSERT_TRUE(client_->stub().GetStatus(&context, about, &status).ok());
    EXPECT_TRUE(status.is_primary());
    EXPECT_EQ(status.is_confirmed(), confirm);
    EXPECT_EQ(status.durable_lsn(), 2u);
  }
}

// More than one message, and more than a window of gRPC.
TEST_F(LogCallsTest, LongReadComesInMessages) {
  MustOpenClient();
  for (int i = 0; i < 40; ++i) {
    MustAppend(std::string(16 << 10, static_cast<char>('a' + i % 26)));
  }
  EXPECT_EQ(client_->ReadAll().size(), 40u);
}

TEST_F(LogCallsTest, CleanedRecordsAreGoneAndTheClientGoesOn) {
  MustOpenClient();
  MustAppend("a");
  MustAppend("b");
  grpc::ClientContext context;
  v1::CleanupRequest clean;
  clean.set_log("main");
  clean.set_through_lsn(3);
  v1::CleanupResponse cleaned;
  ASSERT_TRUE(client_->stub().Cleanup(&context, clean, &cleaned).ok());
  EXPECT_EQ(cleaned.head_lsn(), 3u);  // the last request stays
  v1::AppendResponse again;
  ASSERT_TRUE(client_->Append(client_->Request(2, "b"), &again).ok());
  EXPECT_TRUE(again.repeated());
  MustAppend("c");
  EXPECT_THAT(client_->ReadAll(), ElementsAre("b", "c"));
  v1::ReadRequest read;
  read.set_log("main");
  read.set_from_lsn(2);
  std::vector<v1::Record> records;
  const grpc::Status status = client_->Read(read, &records);
  EXPECT_EQ(status.error_code(), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ErrorIn(status).out_of_log().head_lsn(), 3u);
  grpc::ClientContext second;
  clean.set_through_lsn(1'000);
  EXPECT_EQ(client_->stub().Cleanup(&second, clean, &cleaned).error_code(),
            StatusCode::OUT_OF_RANGE);
}

TEST_F(LogCallsTest, FullLogRefusesAndIsCleaned) {
  MustOpenClient();
  v1::AppendResponse response;
  grpc::Status status;
  while (status.ok())
    status = client_->Append(std::string(60'000, 'x'), &response);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext context;
  v1::CleanupRequest clean;
  clean.set_log("main");
  clean.set_through_lsn(client_->next);
  v1::CleanupResponse cleaned;
  ASSERT_TRUE(client_->stub().Cleanup(&context, clean, &cleaned).ok());
  EXPECT_TRUE(client_->Append(std::string(60'000, 'x'), &response).ok());
}

// Nothing persists what is in memory alone.
TEST_F(LogCallsTest, DurabilityOfALogInMemoryIsNone) {
  grpc::ClientContext context;
  v1::DescribeDurabilityRequest request;
  request.set_log("main");
  v1::DescribeDurabilityResponse plan;
  ASSERT_TRUE(
      client_->stub().DescribeDurability(&context, request, &plan).ok());
  EXPECT_EQ(plan.count(), 1u);
  EXPECT_EQ(plan.write_quorum(), 1u);
  EXPECT_EQ(plan.lost_replicas_max(), 0u);
  EXPECT_EQ(plan.absent_replicas_max(), 0u);
  EXPECT_EQ(plan.exposed_records(), 0u);
  EXPECT_EQ(plan.exposed_records_max(), log_->ExposedMax());
  ASSERT_EQ(plan.replicas_size(), 1);
  const v1::DescribeDurabilityResponse::Replica& own = plan.replicas(0);
  EXPECT_EQ(own.node(), 0u);
  EXPECT_TRUE(own.is_primary());
  EXPECT_TRUE(own.in_sync());
  EXPECT_EQ(own.medium(),
            v1::DescribeDurabilityResponse::MEDIUM_PROCESS_MEMORY);
  EXPECT_THAT(own.steps(), IsEmpty());
}

// In a file, which is opened again.
class NextOpeningTest : public ServerTest {
 protected:
  NextOpeningTest() {
    CloseLog();
    const auto formatted =
        Log::Format({.path = path_, .region_bytes = 1 << 20});
    EXPECT_TRUE(formatted.ok()) << formatted.status();
    OpenLog({.path = path_});
  }
  ~NextOpeningTest() override { CloseLog(); }

  v1::ListEpochsResponse Epochs() {
    grpc::ClientContext context;
    v1::ListEpochsRequest request;
    request.set_log("main");
    v1::ListEpochsResponse epochs;
    const grpc::Status listed =
        client_->stub().ListEpochs(&context, request, &epochs);
    EXPECT_TRUE(listed.ok()) << listed.error_message();
    return epochs;
  }

  const TempDirectory directory_;
  const std::string path_ = directory_.File("log");
};

TEST_F(NextOpeningTest, ClientResumesWithIt) {
  MustOpenClient();
  const v1::AppendResponse first = MustAppend("a");
  const uint64_t before = client_->epoch;
  CloseLog();
  v1::AppendResponse response;
  const grpc::Status away = client_->Append(client_->Request("b"), &response);
  EXPECT_EQ(away.error_code(), StatusCode::UNAVAILABLE);
  OpenLog({.path = path_});
  EXPECT_TRUE(ErrorIn(client_->Append(client_->Request("b"), &response))
                  .has_wrong_epoch());
  v1::ResumeClientResponse resumed;
  ASSERT_TRUE(client_->Resume(1, before, &resumed).ok());
  EXPECT_EQ(resumed.last_sequence(), 1u);
  ASSERT_EQ(resumed.places_size(), 1);
  EXPECT_EQ(resumed.places(0).first().lsn(), first.place().lsn());
  EXPECT_GT(client_->epoch, before);
  MustAppend("b");
  EXPECT_THAT(client_->ReadAll(), ElementsAre("a", "b"));
}

TEST_F(NextOpeningTest, FileIsPersistedByASystemCall) {
  grpc::ClientContext context;
  v1::DescribeDurabilityRequest request;
  request.set_log("main");
  v1::DescribeDurabilityResponse plan;
  ASSERT_TRUE(
      client_->stub().DescribeDurability(&context, request, &plan).ok());
  ASSERT_EQ(plan.replicas_size(), 1);
  EXPECT_EQ(plan.replicas(0).medium(),
            v1::DescribeDurabilityResponse::MEDIUM_FILE);
  EXPECT_THAT(plan.replicas(0).steps(), ElementsAre("msync"));
}

TEST_F(NextOpeningTest, EpochsAreThoseThatHaveRecordsAndTheRunningOne) {
  const v1::ListEpochsResponse fresh = Epochs();
  ASSERT_EQ(fresh.epochs_size(), 1);
  EXPECT_EQ(fresh.epochs(0).node(), 0u);
  EXPECT_EQ(fresh.epochs(0).first_lsn(), 1u);
  EXPECT_EQ(fresh.epochs(0).last_lsn(), 0u);
  EXPECT_EQ(fresh.opening().epoch(), fresh.epochs(0).epoch());
  EXPECT_EQ(fresh.opening().previous_epoch(), 0u);
  EXPECT_EQ(fresh.opening().promise_ns(), 0u);
  MustOpenClient();
  MustAppend("a");
  EXPECT_EQ(Epochs().epochs(0).last_lsn(), 2u);
  CloseLog();
  // One that writes nothing.
  OpenLog({.path = path_});
  EXPECT_EQ(Epochs().epochs_size(), 2);
  CloseLog();
  OpenLog({.path = path_});
  const v1::ListEpochsResponse third = Epochs();
  ASSERT_EQ(third.epochs_size(), 2);
  EXPECT_EQ(third.epochs(0).epoch(), fresh.opening().epoch());
  EXPECT_EQ(third.epochs(0).last_lsn(), 2u);
  EXPECT_EQ(third.epochs(1).epoch(), third.opening().epoch());
  EXPECT_EQ(third.epochs(1).first_lsn(), 3u);
  EXPECT_EQ(third.epochs(1).last_lsn(), 2u);
  EXPECT_GT(third.opening().previous_epoch(), fresh.opening().epoch());
  EXPECT_EQ(third.opening().head_lsn(), 1u);
  EXPECT_EQ(third.opening().end_lsn(), 2u);
  // All is cleaned: the first epoch is forgotten by the next opening.
  ASSERT_TRUE(log_->CleanupAll().ok());
  EXPECT_EQ(Epochs().epochs_size(), 2);
  CloseLog();
  OpenLog({.path = path_});
  ASSERT_EQ(Epochs().epochs_size(), 1);
  EXPECT_EQ(Epochs().epochs(0).first_lsn(), 3u);
}

TEST_F(NextOpeningTest, LogOfOthersIsNotServed) {
  CloseLog();
  {
    auto log = Log::Open({.path = path_});
    ASSERT_TRUE(log.ok());
    ASSERT_TRUE((*log)->Append("somebody else's").ok());
  }
  auto log = Log::Open({.path = path_});
  ASSERT_TRUE(log.ok());
  const absl::Status serves = logs_.Serve("main", **log);
  EXPECT_TRUE(absl::IsFailedPrecondition(serves)) << serves;
  const grpc::Status status = client_->Open();
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("open, but not served"));
  logs_.Withdraw("main");
  EXPECT_EQ(client_->Open().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace alpheus::testing
