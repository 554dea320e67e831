// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/service/service_server.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/format/layout.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service/service_clients.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using service::AppendRequest;
using service::Finding;
using service::Place;
using service::Verdict;
using Kind = ServiceMessage::Kind;

namespace {

// Until a thread looks again whether its primary ends.
constexpr int64_t kLookAgainNanos = 200'000;
// One group in this many is answered request by request.
constexpr uint64_t kSingleOdds = 3;

using Bytes = std::vector<std::byte>;

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
  absl::Status OnPersisted(
      Lsn lsn, PersistedBy by,
      std::function<void(const absl::Status&)> callback) override {
    return primary_.OnPersisted(
        lsn, by,
        [this, lsn, by, then = std::move(callback)](const absl::Status& end) {
          if (end.ok() && by != PersistedBy::kOwnReplica) {
            world_.checkers().service.Durable(primary_.number(), lsn);
          }
          then(end);
          primary_.RanCallback();
        });
  }
  absl::Status OnEpochConfirmed(
      std::function<void(const absl::Status&)> callback) override {
    return primary_.OnEpochConfirmed(
        [this, then = std::move(callback)](const absl::Status& end) {
          then(end);
          primary_.RanCallback();
        });
  }
  // Threads look again by themselves (JudgeUntilItGoesOn).
  absl::StatusOr<bool> OnResumed(
      std::function<void(const absl::Status&)> /*callback*/) override {
    return false;
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
  uint64_t free_bytes() const override { return primary_.log().free_bytes(); }

  // Notes the requests that are judged next; none: no requests are.
  void Judges(std::span<const ServiceRequest> requests) {
    judged_.clear();
    for (const ServiceRequest& request : requests) {
      judged_[request.number.sequence] = request.copy;
    }
  }

 private:
  // OnPersisted tells the outcome of a record whose log fails now.
  Place Complete(ReservedRecord& record, Bytes content) {
    History& history = world_.history();
    const OperationId operation =
        history.Begin(primary_.number(), kPayloadBytesMin + content.size());
    history.HasLsn(operation, record.lsn);
    Bytes payload(kPayloadBytesMin + content.size());
    FillPayload(operation, payload, content);
    std::ranges::copy(payload, record.payload);
    record.filled_in_place = true;
    world_.checkers().service.Writes(primary_.number(), primary_.epoch(),
                                     operation, record.lsn, content, judged_);
    history.HasContent(operation, std::move(content));
    history.MayBeCompleted(operation);
    const BegunCall complete = primary_.Begin(ClientCall::kComplete);
    primary_.Returned(complete, record.lsn, primary_.log().Complete(record));
    return {primary_.epoch(), record.lsn};
  }

  PrimaryProcess& primary_;
  World& world_;
  std::map<uint64_t, CopyNumber> judged_;
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
                                 primary_.world().now() + kLookAgainNanos);
      continue;
    }
    const ServiceConnectionId connection = arrived->connection;
    Handle(*arrived);
    connections_.Done(connection);
  }
}

void ServiceServer::Handle(const ServiceConnections::Arrived& arrived) {
  const auto& [connection, message] = arrived;
  switch (message.kind) {
    case Kind::kOpen:
    case Kind::kClose:
      return BeginOrEnd(connection, message);
    case Kind::kResume:
      return Resume(connection, message);
    case Kind::kAppend:
      return Append(connection, message);
    case Kind::kCleanup:
      return Clean(connection, message);
    case Kind::kRead:
      return Read(connection, message);
  }
}

void ServiceServer::BeginOrEnd(ServiceConnectionId connection,
                               const ServiceMessage& message) {
  std::vector<Verdict> verdicts;
  JudgeUntilItGoesOn(
      [&](std::vector<Verdict>* judged) {
        judged->push_back(message.kind == Kind::kOpen
                              ? service_.Open(message.epoch, message.key)
                              : service_.Close(message.epoch, message.client));
      },
      &verdicts);
  AnswerWhenSettled(connection, verdicts,
                    {.kind = message.kind, .verdicts = verdicts});
}

void ServiceServer::JudgeUntilItGoesOn(
    const std::function<void(std::vector<Verdict>*)>& judge,
    std::vector<Verdict>* verdicts) {
  for (;;) {
    {
      const FiberLock lock(one_at_a_time_);
      judge(verdicts);
    }
    const auto held =
        std::ranges::find(*verdicts, Finding::kHeldUp, &Verdict::finding);
    if (held == verdicts->end() || primary_.is_closing()) return;
    verdicts->erase(held, verdicts->end());
    ++primary_.world().counters().service_held_up;
    connections_.WaitAsPrimary(primary_.number(),
                               primary_.world().now() + kLookAgainNanos);
  }
}

void ServiceServer::Resume(ServiceConnectionId connection,
                           const ServiceMessage& message) {
  service::Resumed resumed;
  {
    const FiberLock lock(one_at_a_time_);
    resumed = service_.Resume(message.client, message.lowest_unanswered,
                              message.last_epoch);
  }
  const Verdict verdict = resumed.verdict;
  AnswerWhenSettled(connection, {&verdict, 1},
                    {.kind = message.kind, .resumed = std::move(resumed)});
}

void ServiceServer::Append(ServiceConnectionId connection,
                           const ServiceMessage& message) {
  std::vector<std::vector<std::span<const std::byte>>> payloads;
  std::vector<AppendRequest> requests;
  std::vector<uint64_t> sequences;
  for (const ServiceRequest& request : message.requests) {
    auto& parts = payloads.emplace_back();
    for (const std::string& part : request.payload.parts) {
      parts.push_back(AsBytes(part));
    }
    AppendRequest& one = requests.emplace_back();
    one = {.client = message.client,
           .number = request.number,
           .tag = request.payload.tag,
           .only_if_last = request.payload.only_if_last,
           .payloads = parts};
    if (request.payload.expected_lsn) {
      one.expected_lsn = Lsn(*request.payload.expected_lsn);
    }
    sequences.push_back(request.number.sequence);
  }
  std::vector<Verdict> verdicts;
  JudgeUntilItGoesOn(
      [&](std::vector<Verdict>* judged) {
        const size_t from = judged->size();
        port_->Judges(std::span(message.requests).subspan(from));
        service_.Append(message.epoch, std::span(requests).subspan(from),
                        judged);
        port_->Judges({});
      },
      &verdicts);
  if (primary_.world().random().Below(kSingleOdds) != 0) {
    return AnswerWhenSettled(
        connection, verdicts,
        {.sequences = std::move(sequences), .verdicts = verdicts}, message.by);
  }
  for (size_t i = 0; i < verdicts.size(); ++i) {
    AnswerWhenSettled(connection, {&verdicts[i], 1},
                      {.sequences = {sequences[i]}, .verdicts = {verdicts[i]}},
                      message.by);
  }
}

void ServiceServer::Clean(ServiceConnectionId connection,
                          const ServiceMessage& message) {
  // The client may have heard of more than is durable here by now.
  const Lsn through = std::min(message.through, port_->durable_lsn());
  if (primary_.is_filling() || through < port_->head_lsn()) {
    return connections_.Answer(connection,
                               {.kind = message.kind, .verdicts = {Verdict()}});
  }
  const FiberLock lock(one_at_a_time_);
  service_.CleanupThrough(
      through, [this, connection](const absl::Status& cleaned) {
        Verdict verdict;
        if (absl::IsResourceExhausted(cleaned)) {
          verdict.finding = Finding::kNoRoom;
        }
        connections_.Answer(connection,
                            {.kind = Kind::kCleanup, .verdicts = {verdict}});
      });
}

void ServiceServer::Read(ServiceConnectionId connection,
                         const ServiceMessage& message) {
  service_.BeginRead(message.consistency, Lsn(),
                     [this, connection](const absl::StatusOr<Lsn>& durable) {
                       connections_.Answer(
                           connection,
                           {.kind = Kind::kRead,
                            .is_unknown = !durable.ok(),
                            .epoch = epoch(),
                            .through = durable.ok() ? *durable : Lsn(0)});
                     });
}

void ServiceServer::AnswerWhenSettled(ServiceConnectionId connection,
                                      std::span<const Verdict> verdicts,
                                      ServiceAnswer answer, PersistedBy by) {
  if (std::ranges::find(verdicts, Finding::kNoRoom, &Verdict::finding) !=
      verdicts.end()) {
    primary_.profiles().FoundFull();
  }
  service_.Settle(verdicts, by,
                  [this, connection,
                   answer = std::move(answer)](const absl::Status& status) {
                    ServiceAnswer told = answer;
                    told.is_unknown = !status.ok();
                    told.epoch = epoch();
                    connections_.Answer(connection, std::move(told));
                  });
}

}  // namespace alpheus::sim
