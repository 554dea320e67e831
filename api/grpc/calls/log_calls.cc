// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/log_calls.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log_tail.h"
#include "api/grpc/calls/append_stream.h"
#include "api/grpc/calls/log_use.h"
#include "api/grpc/calls/read_stream.h"
#include "api/grpc/calls/shown_token.h"
#include "api/grpc/calls/tail_stream.h"
#include "api/grpc/wire/call_error.h"
#include "api/grpc/wire/messages.h"
#include "api/service/log/service_log.h"
#include "api/service/record/service_record.h"
#include "log/base/bytes.h"

namespace alpheus::rpc {
namespace {

using grpc::ServerUnaryReactor;
using service::Finding;
using service::Verdict;

constexpr uint32_t kListedDefault = 1'000;
constexpr uint32_t kListedMax = 10'000;

// An administrator finds the clients whose programs are gone, and ends them.
constexpr Roles kClientsRoles = Roles(Role::kAppend) | Role::kAdmin;

ServerUnaryReactor* Refuse(const UnaryCall& call, const CallError& error) {
  call.Finish(error.ToStatus());
  return call.reactor();
}

// Sends the answer to one request once its verdict may be told. `fill` sets the
// response of a request that is in the log, or, if it may, was never appended.
void AnswerWhenSettled(const SharedUse& use, const Verdict& verdict,
                       const RequestName& name, bool tells_never,
                       const UnaryCall& call,
                       std::function<void(const Verdict&)> fill,
                       std::optional<PersistedBy> by = PersistedBy::kQuorum) {
  const bool is_told = verdict.is_in_log() ||
                       (tells_never && verdict.finding == Finding::kNever);
  // A record that was appended is settled before the log is closed, whether or
  // not its caller still waits for that.
  (*use)->Settle({&verdict, 1}, by,
                 [=, fill = std::move(fill)](const absl::Status& status) {
                   call.Answer([&] {
                     if (!status.ok()) {
                       return UnknownOutcome(name, status).ToStatus();
                     }
                     if (!is_told) return ErrorOf(verdict, name).ToStatus();
                     fill(verdict);
                     return grpc::Status::OK;
                   });
                   (void)use;
                 });
}

// Judges a request, and answers it. If the log would have waited, the request
// is judged again once that is over, on the thread of `tasks`, unless its
// caller has gone (UNC2): nothing of it was written until then.
void JudgeAndAnswer(
    TaskThread& tasks, const UnaryCall& call, const SharedUse& use,
    const std::function<Verdict(service::ServedLog&)>& judge,
    const std::function<void(const SharedUse&, const Verdict&)>& answer) {
  Verdict verdict = judge(**use);
  // Once more if nothing is under way: what has held the log up may be over.
  for (bool is_again = false; verdict.finding == Finding::kHeldUp;
       is_again = true) {
    call.Keep(use);
    const bool waits =
        (*use)->service().AwaitRoom([&tasks, call, judge, answer] {
          tasks.Post([&tasks, call, judge, answer] {
            const SharedUse kept = call.BeginWork();
            if (kept == nullptr) return;
            JudgeAndAnswer(tasks, call, kept, judge, answer);
            call.EndWork();
          });
        });
    if (waits) return;
    if (is_again) break;
    verdict = judge(**use);
  }
  answer(use, verdict);
}

// Checks that a record is the one that its client knows. Requires: it is
// durable. Errors: OutOfRange (it is another one, or was cleaned); as
// LogTail::Next.
absl::Status CheckPlace(Log& log, const service::Place& place) {
  absl::StatusOr<std::unique_ptr<LogTail>> tail = log.Tail(place.lsn);
  if (!tail.ok()) return tail.status();
  const auto record = (*tail)->Next();
  if (!record.ok()) return record.status();
  const bool is_there = record->has_value() && (*record)->lsn == place.lsn;
  if (is_there && (*record)->epoch == place.epoch) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "the record of epoch ", place.epoch.value, " at LSN ", place.lsn.value,
      " is not in the log: it was never durable, and was lost. ",
      is_there ? absl::StrCat("Epoch ", (*record)->epoch.value,
                              " has given its LSN to another one")
               : "Its LSN has no record"));
}

// Refuses a call for an LSN that this log has not got, once it is sure that no
// other primary has it (P-H23); at once for any other reason.
ServerUnaryReactor* RefuseConfirmed(const SharedUse& use, const UnaryCall& call,
                                    const absl::Status& why) {
  const Lsn head = (*use)->log().head_lsn();
  if (!absl::IsOutOfRange(why)) return Refuse(call, ErrorOf(why, head));
  call.Keep(use);
  (*use)->BeginRead(service::Consistency::kLinearizable, Lsn(),
                    [call, why, head](const absl::StatusOr<Lsn>& confirmed) {
                      const absl::Status& told =
                          confirmed.ok() ? why : confirmed.status();
                      call.Finish(ErrorOf(told, head).ToStatus());
                    });
  return call.reactor();
}

// Answers when this record is durable. `Response` has a durable_lsn.
template <class Response>
ServerUnaryReactor* AnswerWhenDurable(const SharedUse& use,
                                      const service::Place& place,
                                      const UnaryCall& call,
                                      Response* response) {
  call.Keep(use);
  const absl::Status waits = (*use)->waits().Wait(
      call.name(), place.lsn,
      [call, place, response, log = &(*use)->log()](absl::Status status) {
        call.Answer([&] {
          if (status.ok()) status = CheckPlace(*log, place);
          if (!status.ok()) return ErrorOf(status, log->head_lsn()).ToStatus();
          response->set_durable_lsn(log->durable_lsn().value);
          return grpc::Status::OK;
        });
      });
  if (!waits.ok()) return RefuseConfirmed(use, call, waits);
  return call.reactor();
}

void SetStatus(service::ServedLog& served, v1::GetStatusResponse* response) {
  const Log& log = served.log();
  response->set_is_primary(true);
  response->set_epoch(served.service().epoch().value);
  response->set_head_lsn(log.head_lsn().value);
  response->set_durable_lsn(log.durable_lsn().value);
  response->set_next_lsn(log.next_lsn().value);
  response->set_max_payload_bytes(
      std::min(served.service().request_bytes_max(),
               kMessageBytesMax - kMessageHeadBytes));
  response->set_clients(served.service().clients());
  SetReplicas(log.replication_status(), response->mutable_replicas());
}

}  // namespace

absl::Status LogCalls::CheckAccess(const grpc::CallbackServerContext& context,
                                   Roles roles, const std::string& log) const {
  return access_.Check(ShownIn(context, access_), roles, log);
}

SharedUse LogCalls::Enter(const grpc::CallbackServerContext& context,
                          const UnaryCall& call, Roles roles,
                          const std::string& log) {
  const absl::Status may = CheckAccess(context, roles, log);
  if (!may.ok()) {
    Refuse(call, NotAllowed(may));
    return nullptr;
  }
  service::FoundLog found = logs_.Find(log);
  if (!found.use) {
    Refuse(call, ErrorOf(found));
    return nullptr;
  }
  return Share(std::move(found.use));
}

ServerUnaryReactor* LogCalls::OpenClient(grpc::CallbackServerContext* context,
                                         const v1::OpenClientRequest* request,
                                         v1::OpenClientResponse* response) {
  const UnaryCall call(counts_, Method::kOpenClient);
  const SharedUse use = Enter(*context, call, Role::kAppend, request->log());
  if (use == nullptr) return call.reactor();
  std::optional<service::ClientKey> key;
  if (const std::string& bytes = request->key(); !bytes.empty()) {
    if (bytes.size() != service::kKeyBytes) {
      return Refuse(call, Invalid(absl::StrCat(
                              "begin a client by a key of ", bytes.size(),
                              " bytes: a key has ", service::kKeyBytes,
                              ", or there is none")));
    }
    std::ranges::copy(AsBytes(bytes), key.emplace().begin());
  }
  const Epoch epoch = (*use)->service().epoch();
  JudgeAndAnswer(
      tasks_, call, use,
      [epoch, key](service::ServedLog& log) {
        return log.service().Open(epoch, key);
      },
      [call, epoch, response](const SharedUse& used, const Verdict& verdict) {
        AnswerWhenSettled(used, verdict, {{}, 0, epoch, epoch}, false, call,
                          [response, epoch](const Verdict& opened) {
                            SetPlace(*opened.place, response->mutable_client());
                            response->set_epoch(epoch.value);
                          });
      });
  return call.reactor();
}

ServerUnaryReactor* LogCalls::CloseClient(grpc::CallbackServerContext* context,
                                          const v1::CloseClientRequest* request,
                                          v1::CloseClientResponse* response) {
  const UnaryCall call(counts_, Method::kCloseClient);
  const SharedUse use = Enter(*context, call, kClientsRoles, request->log());
  if (use == nullptr) return call.reactor();
  const service::ClientId client = ClientOf(request->client());
  const Epoch epoch(request->epoch());
  JudgeAndAnswer(
      tasks_, call, use,
      [epoch, client](service::ServedLog& log) {
        return log.service().Close(epoch, client);
      },
      [call, epoch, client, response](const SharedUse& used,
                                      const Verdict& verdict) {
        AnswerWhenSettled(used, verdict,
                          {client, 0, epoch, (*used)->service().epoch()}, false,
                          call, [response](const Verdict& closed) {
                            SetPlace(*closed.place, response->mutable_place());
                          });
      });
  return call.reactor();
}

ServerUnaryReactor* LogCalls::ListClients(grpc::CallbackServerContext* context,
                                          const v1::ListClientsRequest* request,
                                          v1::ListClientsResponse* response) {
  const UnaryCall call(counts_, Method::kListClients);
  const SharedUse use = Enter(*context, call, kClientsRoles, request->log());
  if (use == nullptr) return call.reactor();
  if (request->max() > kListedMax) {
    return Refuse(call,
                  Invalid(absl::StrCat("list ", request->max(),
                                       " clients: ask for ", kListedMax,
                                       " at most, and then for those behind")));
  }
  const uint32_t max = request->max() == 0 ? kListedDefault : request->max();
  for (const service::TableEntry& entry :
       (*use)->service().ListOpen(ClientOf(request->after()), max)) {
    v1::ListClientsResponse::Client* const client = response->add_clients();
    SetPlace(entry.client.opened, client->mutable_client());
    client->set_last_sequence(entry.sequence);
    SetPlace(entry.place, client->mutable_last_place());
  }
  call.Finish(grpc::Status::OK);
  return call.reactor();
}

ServerUnaryReactor* LogCalls::Append(grpc::CallbackServerContext* context,
                                     const v1::AppendRequest* request,
                                     v1::AppendResponse* response) {
  const UnaryCall call(counts_, Method::kAppend);
  const SharedUse use = Enter(*context, call, Role::kAppend, request->log());
  if (use == nullptr) return call.reactor();
  if (const auto error = CheckDurability(request->durability())) {
    return Refuse(call, *error);
  }
  const absl::Status paced = access_.Take(ShownIn(*context, access_),
                                          request->payload().ByteSizeLong());
  if (!paced.ok()) return Refuse(call, NotAllowed(paced));
  const bool is_timed = (*use)->counts().Samples(1);
  JudgeAndAnswer(
      tasks_, call, use,
      [request](service::ServedLog& log) {
        const AppendRequestParts parts(
            ClientOf(request->client()),
            NumberOf(request->number(), request->resumption()),
            request->payload());
        const service::AppendRequest append = parts.Get();
        std::vector<Verdict> verdicts;
        log.service().Append(Epoch(request->epoch()), {&append, 1}, &verdicts);
        return verdicts.front();
      },
      [this, call, request, response, is_timed](const SharedUse& used,
                                                const Verdict& verdict) {
        AnswerAppend(used, verdict, call, *request, response, is_timed);
      });
  return call.reactor();
}

void LogCalls::AnswerAppend(const SharedUse& use, const Verdict& verdict,
                            const UnaryCall& call,
                            const v1::AppendRequest& request,
                            v1::AppendResponse* response, bool is_timed) {
  const int64_t appended_ns = is_timed ? counts_.NowNanos() : 0;
  if (is_timed) {
    (*use)->counts().NoteStage(service::AppendStage::kAppended,
                               appended_ns - call.began_ns());
  }
  AnswerWhenSettled(
      use, verdict,
      {ClientOf(request.client()), request.number().sequence(),
       Epoch(request.epoch()), (*use)->service().epoch()},
      false, call,
      [response, use, appended_ns, this](const Verdict& appended) {
        if (appended_ns != 0) {
          (*use)->counts().NoteStage(service::AppendStage::kDurable,
                                     counts_.NowNanos() - appended_ns);
        }
        if (appended.place) {
          SetPlace(*appended.place, response->mutable_place());
        }
        response->set_repeated(appended.finding == Finding::kRepeated);
        response->set_durable_lsn((*use)->log().durable_lsn().value);
      },
      PersistedByOf(request.durability()));
}

grpc::ServerBidiReactor<v1::AppendStreamRequest, v1::AppendStreamResponse>*
LogCalls::AppendStream(grpc::CallbackServerContext* context) {
  return AppendStream::Start(
      logs_, tasks_, counts_,
      Permit(access_, ShownIn(*context, access_), Role::kAppend));
}

ServerUnaryReactor* LogCalls::ResumeClient(
    grpc::CallbackServerContext* context,
    const v1::ResumeClientRequest* request,
    v1::ResumeClientResponse* response) {
  const UnaryCall call(counts_, Method::kResumeClient);
  const SharedUse use = Enter(*context, call, Role::kAppend, request->log());
  if (use == nullptr) return call.reactor();
  service::ServiceLog& log = (*use)->service();
  const service::ClientId client = ClientOf(request->client());
  const service::Resumed resumed = log.Resume(
      client, request->lowest_unanswered(), Epoch(request->last_epoch()));
  // A later primary may have what this one lacks.
  if (resumed.verdict.finding == Finding::kWrongEpoch) {
    return Refuse(call, HandedOver());
  }
  response->set_epoch(log.epoch().value);
  response->set_resumption(resumed.resumption);
  response->set_last_sequence(resumed.last);
  response->set_ended(resumed.is_closed);
  for (const service::Placed& placed : resumed.places) {
    AddToRuns(placed.sequence, placed.place, /*is_repeat=*/true,
              response->mutable_places());
  }
  AnswerWhenSettled(use, resumed.verdict,
                    {client, 0, Epoch(request->last_epoch()), log.epoch()},
                    false, call, [](const Verdict&) {});
  return call.reactor();
}

ServerUnaryReactor* LogCalls::Resolve(grpc::CallbackServerContext* context,
                                      const v1::ResolveRequest* request,
                                      v1::ResolveResponse* response) {
  const UnaryCall call(counts_, Method::kResolve);
  const SharedUse use = Enter(*context, call, Role::kAppend, request->log());
  if (use == nullptr) return call.reactor();
  service::ServiceLog& log = (*use)->service();
  const service::ClientId client = ClientOf(request->client());
  const RequestName name = {client, request->sequence(),
                            Epoch(request->last_epoch()), log.epoch()};
  if (request->sequence() == 0) {
    return Refuse(call, ErrorOf(Verdict(), name));
  }
  const service::Resumed resumed =
      log.Resume(client, request->sequence(), Epoch(request->last_epoch()));
  const Verdict verdict = resumed.On(request->sequence());
  if (verdict.finding == Finding::kWrongEpoch) {
    return Refuse(call, HandedOver());
  }
  response->set_epoch(log.epoch().value);
  response->set_resumption(resumed.resumption);
  AnswerWhenSettled(
      use, verdict, name, true, call, [response](const Verdict& resolved) {
        if (resolved.finding == Finding::kNever) {
          response->set_outcome(v1::ResolveResponse::OUTCOME_NEVER);
          return;
        }
        response->set_outcome(v1::ResolveResponse::OUTCOME_DURABLE);
        if (resolved.place) {
          SetPlace(*resolved.place, response->mutable_place());
        }
      });
  return call.reactor();
}

ServerUnaryReactor* LogCalls::Force(grpc::CallbackServerContext* context,
                                    const v1::ForceRequest* request,
                                    v1::ForceResponse* response) {
  const UnaryCall call(counts_, Method::kForce);
  const SharedUse use = Enter(*context, call, Role::kAppend, request->log());
  if (use == nullptr) return call.reactor();
  Log& log = (*use)->log();
  const absl::Status begun = log.BeginForce(Lsn(request->place().lsn()));
  if (!begun.ok()) return RefuseConfirmed(use, call, begun);
  return AnswerWhenDurable(use, PlaceOf(request->place()), call, response);
}

ServerUnaryReactor* LogCalls::WaitDurable(grpc::CallbackServerContext* context,
                                          const v1::WaitDurableRequest* request,
                                          v1::WaitDurableResponse* response) {
  const UnaryCall call(counts_, Method::kWaitDurable);
  const SharedUse use = Enter(*context, call, Role::kRead, request->log());
  if (use == nullptr) return call.reactor();
  return AnswerWhenDurable(use, PlaceOf(request->place()), call, response);
}

grpc::ServerWriteReactor<v1::ReadResponse>* LogCalls::Read(
    grpc::CallbackServerContext* context, const v1::ReadRequest* request) {
  return ReadStream::Start(
      logs_, tasks_, counts_,
      Permit(access_, ShownIn(*context, access_), Role::kRead), *request);
}

grpc::ServerBidiReactor<v1::TailRequest, v1::TailResponse>* LogCalls::Tail(
    grpc::CallbackServerContext* context) {
  return TailStream::Start(
      logs_, tasks_, counts_,
      Permit(access_, ShownIn(*context, access_), Role::kRead));
}

ServerUnaryReactor* LogCalls::Cleanup(grpc::CallbackServerContext* context,
                                      const v1::CleanupRequest* request,
                                      v1::CleanupResponse* response) {
  const UnaryCall call(counts_, Method::kCleanup);
  const SharedUse use = Enter(*context, call, Role::kAdmin, request->log());
  if (use == nullptr) return call.reactor();
  Log& log = (*use)->log();
  const Lsn through(request->through_lsn());
  if (through > log.durable_lsn()) {
    return RefuseConfirmed(
        use, call,
        absl::OutOfRangeError(absl::StrCat("clean through LSN ", through.value,
                                           ": the last durable one is ",
                                           log.durable_lsn().value)));
  }
  (*use)->service().CleanupThrough(
      through, [=, &log](const absl::Status& status) {
        call.Answer([&] {
          if (!status.ok()) return ErrorOf(status, log.head_lsn()).ToStatus();
          response->set_head_lsn(log.head_lsn().value);
          return grpc::Status::OK;
        });
        (void)use;
      });
  return call.reactor();
}

ServerUnaryReactor* LogCalls::GetExposure(grpc::CallbackServerContext* context,
                                          const v1::GetExposureRequest* request,
                                          v1::GetExposureResponse* response) {
  const UnaryCall call(counts_, Method::kGetExposure);
  const SharedUse use = Enter(*context, call, Role::kRead, request->log());
  if (use == nullptr) return call.reactor();
  response->set_records((*use)->log().Exposed());
  response->set_records_max((*use)->log().ExposedMax());
  call.Finish(grpc::Status::OK);
  return call.reactor();
}

ServerUnaryReactor* LogCalls::GetStatus(grpc::CallbackServerContext* context,
                                        const v1::GetStatusRequest* request,
                                        v1::GetStatusResponse* response) {
  const UnaryCall call(counts_, Method::kGetStatus);
  const absl::Status may = CheckAccess(*context, kAnyRole, request->log());
  if (!may.ok()) return Refuse(call, NotAllowed(may));
  service::FoundLog found = logs_.Find(request->log());
  if (!found.use && !absl::IsUnavailable(found.status)) {
    return Refuse(call, ErrorOf(found));
  }
  if (!found.use) {
    *response->mutable_primary() = ErrorOf(found).error.not_primary();
    call.Finish(grpc::Status::OK);
    return call.reactor();
  }
  const SharedUse use = Share(std::move(found.use));
  if (!request->confirm()) {
    SetStatus(**use, response);
    call.Finish(grpc::Status::OK);
    return call.reactor();
  }
  // An operator wants to see a primary that can't confirm its epoch, too.
  call.Keep(use);
  (*use)->BeginRead(
      service::Consistency::kLinearizable, Lsn(),
      [call, response, log = &**use](const absl::StatusOr<Lsn>& confirmed) {
        call.Answer([&] {
          response->set_is_confirmed(confirmed.ok());
          SetStatus(*log, response);
          return grpc::Status::OK;
        });
      });
  return call.reactor();
}

ServerUnaryReactor* LogCalls::ListLogs(grpc::CallbackServerContext* context,
                                       const v1::ListLogsRequest* /*request*/,
                                       v1::ListLogsResponse* response) {
  const UnaryCall call(counts_, Method::kListLogs);
  const absl::Status may = access_.CheckKnown(ShownIn(*context, access_));
  if (!may.ok()) return Refuse(call, NotAllowed(may));
  for (const auto& [name, is_served] : logs_.List()) {
    if (!CheckAccess(*context, kAnyRole, name).ok()) continue;
    v1::ListLogsResponse::Log* const log = response->add_logs();
    log->set_name(name);
    log->set_is_primary(is_served);
  }
  call.Finish(grpc::Status::OK);
  return call.reactor();
}

ServerUnaryReactor* LogCalls::DescribeDurability(
    grpc::CallbackServerContext* context,
    const v1::DescribeDurabilityRequest* request,
    v1::DescribeDurabilityResponse* response) {
  const UnaryCall call(counts_, Method::kDescribeDurability);
  const SharedUse use = Enter(*context, call, Role::kRead, request->log());
  if (use == nullptr) return call.reactor();
  const Log& log = (*use)->log();
  SetPlan(log.durability_plan(), response);
  response->set_exposed_records(log.Exposed());
  response->set_exposed_records_max(log.ExposedMax());
  call.Finish(grpc::Status::OK);
  return call.reactor();
}

ServerUnaryReactor* LogCalls::ListEpochs(grpc::CallbackServerContext* context,
                                         const v1::ListEpochsRequest* request,
                                         v1::ListEpochsResponse* response) {
  const UnaryCall call(counts_, Method::kListEpochs);
  const SharedUse use = Enter(*context, call, Role::kRead, request->log());
  if (use == nullptr) return call.reactor();
  const Log& log = (*use)->log();
  SetEpochs(log.epochs(), log.report(), response);
  call.Finish(grpc::Status::OK);
  return call.reactor();
}

}  // namespace alpheus::rpc
