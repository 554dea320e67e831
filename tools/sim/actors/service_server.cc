// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/service_server.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"
#include "log/format/layout.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service_clients.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using service::AppendRequest;
using service::Finding;
using service::Place;
using service::Verdict;

namespace {

// Until a thread looks again whether its primary ends.
constexpr int64_t kLookNanos = 200'000;
// One group in this many is answered request by request.
constexpr uint64_t kSingleOdds = 3;

using Bytes = std::vector<std::byte>;

// The payloads of a request: the first one begins with the token.
std::vector<Bytes> PayloadsOf(const ServiceRequest& request) {
  std::vector<Bytes> payloads(request.payloads, Bytes(request.bytes));
  for (size_t i = 0; i < payloads.size(); ++i) {
    for (size_t at = 0; at < request.bytes; at += sizeof(uint64_t)) {
      const uint64_t word =
          i == 0 && at == 0 ? request.token : Mix(request.token, at + i);
      std::memcpy(payloads[i].data() + at, &word,
                  std::min(sizeof(word), request.bytes - at));
    }
  }
  return payloads;
}

}  // namespace

// The primary's log, as ServiceLog needs it.
class ServiceServer::Port final : public service::RecordLog {
 public:
  explicit Port(PrimaryProcess& primary)
      : primary_(primary), world_(primary.world()) {}

  absl::StatusOr<Place> Append(
      std::span<const std::span<const std::byte>> parts) override {
    Bytes content;
    for (const auto part : parts) {
      content.insert(content.end(), part.begin(), part.end());
    }
    if (content.size() > payload_bytes_max()) {
      return absl::InvalidArgumentError("the record is too large");
    }
    const size_t bytes = kPayloadBytesMin + content.size();
    // A deadline that has passed: nobody waits with the service's lock.
    const BegunCall reserve = primary_.Begin(
        ClientCall::kReserve, Deadline::AtNanos(primary_.clock().NowNanos()));
    absl::StatusOr<ReservedRecord> record =
        primary_.log().Reserve(bytes, reserve.deadline);
    if (absl::IsResourceExhausted(record.status())) {
      primary_.profiles().FoundFull();
    }
    if (!primary_.Returned(reserve, record.ok() ? record->lsn : Lsn(0),
                           record.status())) {
      return record.status();
    }
    return Complete(*record, std::move(content));
  }
  absl::Status BeginForce(Lsn lsn) override {
    const BegunCall call = primary_.Begin(ClientCall::kBeginForce);
    const absl::Status begun = primary_.log().BeginForce(lsn);
    primary_.Returned(call, lsn, begun);
    return begun;
  }
  absl::Status OnDurable(
      Lsn lsn, std::function<void(const absl::Status&)> callback) override {
    return primary_.OnDurable(
        lsn, [this, lsn, then = std::move(callback)](const absl::Status& end) {
          if (end.ok()) {
            world_.checkers().service.Durable(primary_.number(), lsn);
          }
          then(end);
          primary_.RanCallback();
        });
  }
  absl::Status CleanupThrough(Lsn lsn) override {
    world_.history().MayBeCleanedThrough(primary_.number(), lsn);
    const BegunCall call = primary_.Begin(ClientCall::kCleanupThrough);
    const absl::Status cleaned = primary_.log().CleanupThrough(lsn);
    primary_.Returned(call, lsn, cleaned);
    if (cleaned.ok()) ++world_.counters().service_cleanings;
    return cleaned;
  }
  Lsn next_lsn() const override { return primary_.log().next_lsn(); }
  Lsn durable_lsn() const override { return primary_.log().durable_lsn(); }
  Lsn head_lsn() const override { return primary_.log().head_lsn(); }
  size_t payload_bytes_max() const override {
    return PayloadBytesMax(world_.options().ring_capacity) - kPayloadBytesMin;
  }

 private:
  // What becomes of a record whose log fails now is told by OnDurable.
  Place Complete(ReservedRecord& record, Bytes content) {
    History& history = world_.history();
    const OperationId operation =
        history.Begin(primary_.number(), kPayloadBytesMin + content.size());
    history.HasLsn(operation, record.lsn);
    Bytes payload(kPayloadBytesMin + content.size());
    FillPayload(operation, payload, content);
    std::ranges::copy(payload, record.payload);
    record.filled_in_place = true;
    world_.checkers().service.Writes(primary_.number(), operation, record.lsn,
                                     content);
    history.HasContent(operation, std::move(content));
    history.MayBeCompleted(operation);
    const BegunCall complete = primary_.Begin(ClientCall::kComplete);
    primary_.Returned(complete, record.lsn, primary_.log().Complete(record));
    return {primary_.epoch(), record.lsn};
  }

  PrimaryProcess& primary_;
  World& world_;
};

ServiceServer::ServiceServer(PrimaryProcess& primary)
    : primary_(primary),
      connections_(primary.world().service_clients()->connections()),
      one_at_a_time_(primary.world().threads()),
      port_(std::make_unique<Port>(primary)),
      service_(*port_, primary.epoch()) {}

ServiceServer::~ServiceServer() = default;

void ServiceServer::Recover(std::span<const History::Shown> records) {
  for (const History::Shown& shown : records) {
    if (shown.aborted || shown.cleaned) continue;
    const absl::Status recovered = service_.Recover(
        {shown.epoch, shown.lsn}, shown.payload.subspan(kPayloadBytesMin));
    if (recovered.ok()) continue;
    primary_.world().oracle().Violate(
        "SVC6",
        absl::StrCat("LSN ", shown.lsn.value, ": ", recovered.ToString()));
    return;
  }
}

void ServiceServer::RunThread() {
  while (!primary_.is_closing()) {
    auto arrived = connections_.Take(primary_.number());
    if (!arrived) {
      connections_.WaitAsPrimary(primary_.number(),
                                 primary_.world().now() + kLookNanos);
      continue;
    }
    const ConnectionId connection = arrived->connection;
    Handle(*std::move(arrived));
    connections_.Done(connection);
  }
}

void ServiceServer::Handle(ServiceConnections::Arrived arrived) {
  const ServiceMessage& message = arrived.message;
  if (message.kind == ServiceMessage::Kind::kAppend) {
    return Append(arrived.connection, message);
  }
  if (message.kind == ServiceMessage::Kind::kCleanup) {
    return Clean(arrived.connection, message);
  }
  const bool is_of_request = message.kind == ServiceMessage::Kind::kResolve;
  const uint64_t sequence =
      is_of_request ? message.requests.front().number.sequence : 0;
  AnswerWhenSettled(arrived.connection, {sequence}, {Judge(message)});
}

Verdict ServiceServer::Judge(const ServiceMessage& message) {
  const FiberLock lock(one_at_a_time_);
  if (message.kind == ServiceMessage::Kind::kOpen) {
    return service_.Open(message.epoch);
  }
  if (message.kind == ServiceMessage::Kind::kClose) {
    return service_.Close(message.epoch, message.client);
  }
  return service_.Resolve(message.client, message.requests.front().number,
                          message.last_epoch);
}

void ServiceServer::Append(ConnectionId connection,
                           const ServiceMessage& message) {
  std::vector<std::vector<Bytes>> payloads;
  std::vector<std::vector<std::span<const std::byte>>> views;
  std::vector<AppendRequest> requests;
  std::vector<uint64_t> sequences;
  for (const ServiceRequest& request : message.requests) {
    payloads.push_back(PayloadsOf(request));
    const std::vector<Bytes>& all = payloads.back();
    views.emplace_back(all.begin(), all.end());
    requests.push_back({.client = message.client,
                        .number = request.number,
                        .tag = request.tag,
                        .expected_lsn = request.expected_lsn,
                        .only_if_last = request.only_if_last,
                        .payloads = views.back()});
    sequences.push_back(request.number.sequence);
  }
  std::vector<Verdict> verdicts;
  {
    const FiberLock lock(one_at_a_time_);
    service_.Append(message.epoch, requests, &verdicts);
  }
  if (primary_.world().random().Below(kSingleOdds) != 0) {
    return AnswerWhenSettled(connection, std::move(sequences),
                             std::move(verdicts));
  }
  for (size_t i = 0; i < verdicts.size(); ++i) {
    AnswerWhenSettled(connection, {sequences[i]}, {verdicts[i]});
  }
}

void ServiceServer::Clean(ConnectionId connection,
                          const ServiceMessage& message) {
  // What the client has heard of may be more than is durable here by now.
  const Lsn through = std::min(message.through, port_->durable_lsn());
  if (primary_.is_filling() || through < port_->head_lsn()) {
    return connections_.Answer(connection, {false, {0}, {Verdict()}});
  }
  const FiberLock lock(one_at_a_time_);
  service_.CleanupThrough(
      through, [this, connection](const absl::Status& cleaned) {
        Verdict verdict;
        if (absl::IsResourceExhausted(cleaned)) {
          verdict.finding = Finding::kNoRoom;
        }
        connections_.Answer(connection, {false, {0}, {verdict}});
      });
}

void ServiceServer::AnswerWhenSettled(ConnectionId connection,
                                      std::vector<uint64_t> sequences,
                                      std::vector<Verdict> verdicts) {
  const std::vector<Verdict> settled = verdicts;
  service_.Settle(
      settled, [this, connection, sequences = std::move(sequences),
                verdicts = std::move(verdicts)](const absl::Status& status) {
        connections_.Answer(connection, {!status.ok(), sequences, verdicts});
      });
}

}  // namespace alpheus::sim
