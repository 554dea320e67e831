// SPDX-License-Identifier: Apache-2.0
// Clients and primaries of a log, with connections that are lost, messages that
// arrive late, and primaries that do not know yet that they are deposed: each
// request is in the log once at most, in order, and each answer is true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/client/append/append_session.h"
#include "api/service/log/service_log.h"
#include "api/service/record/service_record.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/core/durability/persisted_by.h"
#include "tests/api/service/log/memory_record_log.h"

namespace alpheus::client {
namespace {

using service::AppendRequest;
using service::ClientId;
using service::Finding;
using service::MemoryRecordLog;
using service::Resumed;
using service::ServiceLog;
using service::Verdict;
using State = AppendSession::State;

constexpr PersistedBy kQuorum = PersistedBy::kQuorum;

service::Place OfService(const Place& place) {
  return {Epoch(place.epoch), Lsn(place.lsn)};
}

Place OfClient(const service::Place& place) {
  return {place.epoch.value, place.lsn.value};
}

// A process that opened the log.
struct Primary {
  std::unique_ptr<MemoryRecordLog> log;
  std::unique_ptr<ServiceLog> service;
};

// Messages between a client and a primary. Those to the primary still arrive
// when the client has given the connection up.
struct Connection {
  std::shared_ptr<Primary> primary;
  std::deque<std::function<void()>> to_primary = {};
  std::deque<std::function<void()>> to_client = {};
};

// All primaries of a log, newest last.
class Cluster {
 public:
  explicit Cluster(Random& random) : random_(random) {
    primaries_.push_back(std::make_shared<Primary>());
    primaries_[0]->log = std::make_unique<MemoryRecordLog>(Epoch(1));
    primaries_[0]->service =
        std::make_unique<ServiceLog>(*primaries_[0]->log, Epoch(1));
  }

  // Callbacks hold connections, and these hold primaries.
  ~Cluster() {
    for (const auto& primary : primaries_) primary->log->End();
  }

  const std::shared_ptr<Primary>& newest() const { return primaries_.back(); }
  // Most often the newest.
  const std::shared_ptr<Primary>& Any() const {
    return random_.Below(4) != 0 ? newest()
                                 : primaries_[random_.Below(primaries_.size())];
  }
  // Another one opens the log. It has at least what is durable. The one before
  // it goes on, and makes nothing durable any more.
  void FailOver() {
    MemoryRecordLog& old = *newest()->log;
    const Lsn end =
        old.durable_lsn() + random_.Below(old.next_lsn() - old.durable_lsn());
    auto next = std::make_shared<Primary>();
    next->log = std::make_unique<MemoryRecordLog>(old.OpenedWith(end));
    next->service = std::make_unique<ServiceLog>(
        *next->log, newest()->service->epoch() + 1);
    for (const auto& record : next->log->records()) {
      const absl::Status recovered =
          next->service->Recover(record.place, AsBytes(record.payload));
      EXPECT_TRUE(recovered.ok()) << recovered;
    }
    primaries_.push_back(std::move(next));
  }
  void FailSomeOldOne() {
    const auto& one = primaries_[random_.Below(primaries_.size())];
    if (one != newest()) one->log->Fail();
  }
  void MakeSomeDurable() {
    MemoryRecordLog& log = *newest()->log;
    log.MakeDurable(log.durable_lsn() +
                    random_.Below(log.next_lsn() - log.durable_lsn()));
  }
  void CleanSome() {
    MemoryRecordLog& log = *newest()->log;
    const uint64_t durable = log.durable_lsn() - log.head_lsn() + 1;
    if (log.durable_lsn() < log.head_lsn()) return;
    newest()->service->CleanupThrough(log.head_lsn() + random_.Below(durable),
                                      [](const absl::Status&) {});
  }

 private:
  Random& random_;
  std::vector<std::shared_ptr<Primary>> primaries_;
};

// A client with its connection. Old connections are left to the primaries.
class Client {
 public:
  explicit Client(Cluster& cluster) : cluster_(cluster) {}

  void Append(std::optional<uint64_t> expected_lsn) {
    const uint64_t number = appended_ + 1;
    const auto taken = session_.Append(
        {.parts = {absl::StrCat(number)}, .expected_lsn = expected_lsn},
        [this, number](absl::StatusOr<Appended> answer) {
          EXPECT_TRUE(answers.emplace(number, std::move(answer)).second);
        });
    if (taken.ok()) appended_ = *taken;
  }
  void Connect() {
    session_.Lost();
    connection_ = std::make_shared<Connection>(Connection{cluster_.Any()});
    connections.push_back(connection_);
    session_.state() == State::kNew ? SendOpen() : SendResume();
  }
  void Send() {
    if (connection_ == nullptr) return Connect();
    if (!session_.HasToSend()) return;
    Sending sending = session_.TakeToSend(20);
    std::vector<Payload> payloads;
    for (const Payload* payload : sending.payloads)
      payloads.push_back(*payload);
    sending.payloads.clear();
    connection_->to_primary.push_back([connection = std::weak_ptr(connection_),
                                       this, sending, epoch = session_.epoch(),
                                       client = session_.client(),
                                       payloads = std::move(payloads)] {
      Arrive(connection.lock(), epoch, client, sending, payloads);
    });
  }
  void Receive() {
    if (connection_ == nullptr || connection_->to_client.empty()) return;
    const auto message = std::move(connection_->to_client.front());
    connection_->to_client.pop_front();
    message();
  }
  bool IsDone() const { return session_.unanswered() == 0; }
  const Place& name() const { return session_.client(); }
  uint64_t appended() const { return appended_; }

  // All that was ever there: what is under way to primaries may arrive.
  std::vector<std::shared_ptr<Connection>> connections;
  std::map<uint64_t, absl::StatusOr<Appended>> answers;  // by sequence

 private:
  using Shared = std::shared_ptr<Connection>;

  // Gives `message` to the client, unless it has given the connection up.
  void Deliver(const Shared& connection, std::function<void()> message) {
    connection->to_client.push_back(std::move(message));
  }

  void SendOpen() {
    connection_->to_primary.push_back(
        [connection = std::weak_ptr(connection_), this] {
          const Shared here = connection.lock();
          ServiceLog& service = *here->primary->service;
          const Verdict opened = service.Open(service.epoch());
          service.Settle(
              {&opened, 1}, kQuorum,
              [=, this, epoch = service.epoch()](const absl::Status& settled) {
                if (!settled.ok() || opened.finding != Finding::kAppended)
                  return;
                Deliver(here, [=, this] {
                  session_.Opened(OfClient(*opened.place), epoch.value);
                });
              });
        });
  }

  void SendResume() {
    connection_->to_primary.push_back([connection = std::weak_ptr(connection_),
                                       this, client = session_.client(),
                                       lowest = session_.lowest_unanswered(),
                                       last_epoch = session_.last_epoch()] {
      const Shared here = connection.lock();
      ServiceLog& service = *here->primary->service;
      const Resumed resumed =
          service.Resume({OfService(client)}, lowest, Epoch(last_epoch));
      service.Settle(
          {&resumed.verdict, 1}, kQuorum,
          [=, this, epoch = service.epoch()](const absl::Status& settled) {
            // No primary forgets a client that has not ended.
            EXPECT_NE(resumed.verdict.finding, Finding::kUnknownClient);
            if (!settled.ok() ||
                resumed.verdict.finding != Finding::kRepeated) {
              return Deliver(here, [this] { connection_ = nullptr; });
            }
            Deliver(here, [=, this] { TakeResumed(epoch, resumed); });
          });
    });
  }

  void TakeResumed(Epoch epoch, const Resumed& resumed) {
    std::vector<std::pair<uint64_t, Place>> places;
    for (const auto& [sequence, place] : resumed.places) {
      places.emplace_back(sequence, OfClient(place));
    }
    session_.Resumed(epoch.value, resumed.resumption, resumed.last, places);
  }

  // A message of requests arrives at a primary.
  void Arrive(const Shared& here, uint64_t epoch, const Place& client,
              const Sending& sending, const std::vector<Payload>& payloads) {
    std::vector<AppendRequest> requests;
    std::vector<std::span<const std::byte>> parts;
    parts.reserve(payloads.size());
    uint64_t sequence = sending.first_sequence;
    for (const Payload& payload : payloads) {
      parts.push_back(AsBytes(payload.parts.front()));
      AppendRequest& request = requests.emplace_back();
      request.client = {OfService(client)};
      request.number = {sequence++, sending.lowest_unanswered,
                        sending.resumption};
      if (payload.expected_lsn)
        request.expected_lsn = Lsn(*payload.expected_lsn);
      request.payloads = {&parts.back(), 1};
    }
    ServiceLog& service = *here->primary->service;
    std::vector<Verdict> verdicts;
    service.Append(Epoch(epoch), requests, &verdicts);
    service.Settle(verdicts, kQuorum, [=, this](const absl::Status& settled) {
      if (!settled.ok())
        return Deliver(here, [this] { connection_ = nullptr; });
      Deliver(here,
              [=, this] { TakeVerdicts(sending.first_sequence, verdicts); });
    });
  }

  void TakeVerdicts(uint64_t sequence, const std::vector<Verdict>& verdicts) {
    for (const Verdict& verdict : verdicts) {
      std::optional<Place> place;
      if (verdict.place) place = OfClient(*verdict.place);
      switch (verdict.finding) {
        case Finding::kAppended:
        case Finding::kRepeated:
          session_.Done(sequence, 1, place);
          break;
        case Finding::kTailMismatch:
          session_.Refused(sequence, absl::FailedPreconditionError("mismatch"));
          break;
        case Finding::kOutOfOrder:
        case Finding::kNoRoom:
          session_.SetBack(sequence);
          break;
        default:  // another primary, or another resumption
          connection_ = nullptr;
          return;
      }
      ++sequence;
    }
  }

  Cluster& cluster_;
  AppendSession session_{{.unanswered_max = 20}};
  Shared connection_;
  uint64_t appended_ = 0;
};

class ExactlyOnceTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  ExactlyOnceTest() : random_(GetParam()), cluster_(random_) {
    for (int i = 0; i < 3; ++i) {
      clients_.push_back(std::make_unique<Client>(cluster_));
    }
  }

  Client& AnyClient() { return *clients_[random_.Below(clients_.size())]; }

  // Something that is under way to a primary arrives.
  void ArriveSome() {
    std::vector<Connection*> waiting;
    for (const auto& client : clients_) {
      for (const auto& connection : client->connections) {
        if (!connection->to_primary.empty()) {
          waiting.push_back(connection.get());
        }
      }
    }
    if (waiting.empty()) return;
    Connection& one = *waiting[random_.Below(waiting.size())];
    const auto message = std::move(one.to_primary.front());
    one.to_primary.pop_front();
    message();
  }

  void Step() {
    Client& client = AnyClient();
    switch (random_.Below(24)) {
      case 0:
        return client.Connect();
      case 1:
        return random_.Below(3) == 0 ? cluster_.FailOver()
                                     : cluster_.FailSomeOldOne();
      case 2:
        return cluster_.CleanSome();
      case 3:
        return client.Append(cluster_.newest()->log->next_lsn().value +
                             random_.Below(3));
      case 4:
      case 5:
      case 6:
        return client.Append(std::nullopt);
      case 7:
      case 8:
      case 9:
      case 10:
        return client.Receive();
      case 11:
      case 12:
      case 13:
        return cluster_.MakeSomeDurable();
      case 14:
      case 15:
      case 16:
        return client.Send();
      default:
        return ArriveSome();
    }
  }

  bool AllDone() const {
    return std::ranges::all_of(
        clients_, [](const auto& client) { return client->IsDone(); });
  }

  Random random_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_P(ExactlyOnceTest, EachAnswerIsTrue) {
  for (int step = 0; step < 4'000; ++step) Step();
  // From here on nothing fails any more, but what is under way still arrives.
  for (int step = 0; step < 20'000 && !AllDone(); ++step) {
    ArriveSome();
    cluster_.newest()->log->MakeAllDurable();
    Client& client = AnyClient();
    client.Receive();
    client.Send();
    if (random_.Below(50) == 0) client.Connect();
  }
  ASSERT_TRUE(AllDone()) << "a request gets no answer";
  const MemoryRecordLog& log = *cluster_.newest()->log;
  std::vector<MemoryRecordLog::Record> records = log.cleaned();
  records.insert(records.end(), log.records().begin(), log.records().end());
  std::map<Place, std::map<uint64_t, Place>> found;  // by client and sequence
  for (const auto& record : records) {
    const auto read = service::DecodeServiceRecord(AsBytes(record.payload));
    ASSERT_TRUE(read.ok()) << read.status();
    if (read->envelope.kind != service::ServiceRecordKind::kAppend) continue;
    const uint64_t sequence = read->envelope.sequence;
    auto& of_client = found[OfClient(read->envelope.client.opened)];
    EXPECT_TRUE(of_client.empty() || of_client.rbegin()->first < sequence)
        << "a request is there twice, or out of order: " << sequence;
    of_client.emplace(sequence, OfClient(record.place));
    EXPECT_EQ(AsText(read->body), absl::StrCat(sequence));
  }
  uint64_t appended = 0;
  for (const auto& client : clients_) {
    const auto& of_client = found[client->name()];
    EXPECT_EQ(client->answers.size(), client->appended());
    for (const auto& [sequence, answer] : client->answers) {
      const auto there = of_client.find(sequence);
      EXPECT_EQ(answer.ok(), there != of_client.end()) << sequence;
      if (!answer.ok() || there == of_client.end()) continue;
      ++appended;
      EXPECT_EQ(answer->place.value_or(there->second), there->second);
    }
  }
  EXPECT_GT(appended, 50U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExactlyOnceTest,
                         ::testing::Range(uint64_t{1}, uint64_t{101}));

}  // namespace
}  // namespace alpheus::client
