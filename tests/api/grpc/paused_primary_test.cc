// SPDX-License-Identifier: Apache-2.0
// A primary of the service is stopped, another one is elected and appends, and
// the first one goes on. Until it hears of that it believes that it is primary:
// what it answers then must not be old (P-H23).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "log/base/clock.h"
#include "tests/api/grpc/log_client.h"
#include "tests/api/grpc/service_cluster_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {
namespace {

using ::grpc::StatusCode;

constexpr int kReaders = 6;

class PausedServicePrimaryTest : public ServiceClusterTest {
 protected:
  // Answers of nodes that are asked at once.
  struct Tally {
    std::atomic<int> current{0};  // they show the latest record
    std::atomic<int> refused{0};
    std::atomic<int> old{0};
  };

  std::unique_ptr<LogClient> Connected(int node) const {
    return std::make_unique<LogClient>(
        addresses_[static_cast<size_t>(node - 1)],
        grpc::InsecureChannelCredentials(), "");
  }
  static grpc::Status StatusOf(LogClient& client, bool confirm,
                               v1::GetStatusResponse* status) {
    grpc::ClientContext context;
    v1::GetStatusRequest request;
    request.set_log("main");
    request.set_confirm(confirm);
    return client.stub().GetStatus(&context, request, status);
  }
  // Waits until one of the other nodes is primary. Returns its number; 0: none.
  int OtherPrimary(int paused) {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    while (Clock::Real().NowNanos() < end) {
      cluster_->Listen();
      for (int node = 1; node <= kNodes; ++node) {
        if (node == paused) continue;
        v1::GetStatusResponse status;
        if (StatusOf(*Connected(node), false, &status).ok() &&
            status.is_primary()) {
          return node;
        }
      }
    }
    return 0;
  }
  static void AppendAs(LogClient& client, const std::string& data) {
    const grpc::Status opened = client.Open();
    ASSERT_TRUE(opened.ok()) << opened.error_message();
    v1::AppendResponse response;
    const grpc::Status appended = client.Append(data, &response);
    ASSERT_TRUE(appended.ok()) << appended.error_message();
  }
  // Reads once, and counts what came: `latest` is there, or the node refuses.
  static void ReadOnce(LogClient& client, v1::Consistency consistency,
                       const std::string& latest, Tally* tally) {
    v1::ReadRequest request;
    request.set_log("main");
    request.set_consistency(consistency);
    std::vector<v1::Record> records;
    const grpc::Status end = client.Read(request, &records);
    if (!end.ok()) {
      EXPECT_EQ(end.error_code(), StatusCode::UNAVAILABLE)
          << end.error_message();
      EXPECT_TRUE(ErrorIn(end).has_not_primary());
      ++tally->refused;
      return;
    }
    const bool is_current =
        !records.empty() && records.back().payloads(0) == latest;
    ++(is_current ? tally->current : tally->old);
  }
};

TEST_F(PausedServicePrimaryTest, ReadsOfAPrimaryThatWakesAreNotOld) {
  AwaitAllInSync();
  AppendAs(*client_, "before");
  const int paused = primary_;
  Tally linearizable;
  Tally local;
  // Connected before the node stops, so that their reads wait for it.
  std::vector<std::unique_ptr<LogClient>> readers;
  for (int i = 0; i < 2 * kReaders; ++i) {
    readers.push_back(Connected(paused));
    Tally first;
    ReadOnce(*readers.back(), v1::CONSISTENCY_UNSPECIFIED, "before", &first);
    ASSERT_EQ(first.current, 1);
  }
  v1::GetStatusResponse confirmed;
  ASSERT_TRUE(StatusOf(*readers[0], true, &confirmed).ok());
  EXPECT_TRUE(confirmed.is_primary());
  EXPECT_TRUE(confirmed.is_confirmed());
  v1::GetStatusResponse unconfirmed;
  ASSERT_TRUE(StatusOf(*readers[0], false, &unconfirmed).ok());
  EXPECT_FALSE(unconfirmed.is_confirmed());

  cluster_->Pause(paused);
  const int other = OtherPrimary(paused);
  ASSERT_NE(other, 0) << "nobody else is elected";
  const std::unique_ptr<LogClient> writer = Connected(other);
  AppendAs(*writer, "after");
  v1::GetStatusResponse latest;
  ASSERT_TRUE(StatusOf(*writer, false, &latest).ok());

  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * kReaders; ++i) {
    threads.emplace_back([&, i] {
      LogClient& reader = *readers[static_cast<size_t>(i)];
      if (i % 2 == 0) {
        ReadOnce(reader, v1::CONSISTENCY_LOCAL, "after", &local);
      } else {
        ReadOnce(reader, v1::CONSISTENCY_LINEARIZABLE, "after", &linearizable);
      }
    });
  }
  cluster_->Continue(paused);
  // Until it has heard of the other one.
  const std::unique_ptr<LogClient> late = Connected(paused);
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  bool has_heard = false;
  while (!has_heard && Clock::Real().NowNanos() < end) {
    ReadOnce(*late, v1::CONSISTENCY_UNSPECIFIED, "after", &linearizable);
    v1::GetStatusResponse status;
    if (!StatusOf(*late, true, &status).ok()) continue;
    has_heard = !status.is_primary();
    if (status.is_confirmed()) {
      EXPECT_GE(status.durable_lsn(), latest.durable_lsn());
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(has_heard);
  EXPECT_EQ(linearizable.old, 0);
  EXPECT_GE(linearizable.current + linearizable.refused, kReaders);
  // No test depends on it.
  std::cout << "local reads: " << local.old << " old, " << local.current
            << " current, " << local.refused
            << " refused; linearizable: " << linearizable.current
            << " current, " << linearizable.refused << " refused\n";
}

// An operator sees a primary that can reach nobody. Nobody reads from it as if
// it were the only one. Its log fails when its backups were silent for a
// second, which may be over at any step.
TEST_F(PausedServicePrimaryTest, PrimaryWithoutItsBackupsIsSeenAndNotRead) {
  AwaitAllInSync();
  AppendAs(*client_, "before");
  const int primary = primary_;
  v1::GetStatusResponse status;
  ASSERT_TRUE(StatusOf(*client_, false, &status).ok());
  const uint64_t durable = status.durable_lsn();
  for (int node = 1; node <= kNodes; ++node) {
    if (node != primary) cluster_->Pause(node);
  }
  ASSERT_TRUE(StatusOf(*client_, false, &status).ok());
  EXPECT_FALSE(status.is_confirmed());
  if (status.is_primary()) {
    EXPECT_EQ(status.durable_lsn(), durable);
  }
  // These records never change, so nobody is asked.
  v1::ReadRequest settled;
  settled.set_log("main");
  settled.set_to_lsn(durable);
  std::vector<v1::Record> records;
  const grpc::Status read = client_->Read(settled, &records);
  if (read.ok()) {
    EXPECT_EQ(records.size(), 1U);
  } else {
    EXPECT_EQ(read.error_code(), StatusCode::UNAVAILABLE);
  }
  Tally linearizable;
  ReadOnce(*client_, v1::CONSISTENCY_UNSPECIFIED, "before", &linearizable);
  EXPECT_EQ(linearizable.refused, 1);
  ASSERT_TRUE(StatusOf(*client_, true, &status).ok());
  EXPECT_FALSE(status.is_confirmed());
}

}  // namespace
}  // namespace alpheus::testing
