// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/append_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/grpc/wire/messages.h"

namespace alpheus::rpc {
namespace {

using service::Finding;
using service::Verdict;

}  // namespace

AppendStream* AppendStream::Start(service::ServedLogs& logs, TaskThread& tasks,
                                  CallCounts& counts, Permit permit) {
  std::shared_ptr<AppendStream> stream(
      new AppendStream(logs, tasks, counts, std::move(permit)));
  counts.NoteStreamBegun(Method::kAppendStream);
  stream->self_ = stream;
  const absl::Status known = stream->permit_.CheckKnown();
  const MutexLock lock(stream->mutex_);
  if (!known.ok()) {  // ACS3
    stream->End(NotAllowed(known).ToStatus());
  }
  stream->Advance();
  return stream.get();
}

void AppendStream::OnReadDone(bool ok) {
  const std::shared_ptr<AppendStream> self = shared_from_this();
  {
    const MutexLock lock(mutex_);
    is_reading_ = false;
    if (!ok) {
      has_client_ended_ = true;
      End(grpc::Status::OK);
    }
    if (is_ending_) {
      Advance();
      return;
    }
    is_taking_ = true;
  }
  const std::optional<CallError> error =
      has_begun_ ? TakeRequests() : TakeBegin();
  const MutexLock lock(mutex_);
  if (error) End(error->ToStatus());
  Advance();
}

std::optional<CallError> AppendStream::TakeBegin() {
  if (!request_.has_begin()) return Invalid("a stream starts with `begin`");
  const v1::AppendStreamRequest::Begin& begin = request_.begin();
  const absl::Status may = permit_.Enter(begin.log());
  if (!may.ok()) return NotAllowed(may);
  if (auto error = CheckDurability(begin.durability())) return error;
  service::FoundLog found = logs_.Find(begin.log());
  if (!found.use) return ErrorOf(found);
  const Epoch opening = found.use->service().epoch();
  if (Epoch(begin.epoch()) != opening) {
    return WrongEpoch(Epoch(begin.epoch()), opening);
  }
  has_begun_ = true;
  client_ = ClientOf(begin.client());
  epoch_ = opening;
  stream_by_ = PersistedByOf(begin.durability());
  tells_accepted_ = begin.tell_accepted();
  max_exposed_ = begin.max_exposed();
  resumption_ = begin.resumption();
  const SharedUse use = Share(std::move(found.use));
  {
    const MutexLock lock(mutex_);
    is_taking_ = false;
    // Its client has gone.
    if (is_ending_) return std::nullopt;
    use_ = use;
    log_counts_ = &(*use)->counts();
    last_admitted_ = 0;
  }
  (*use)->Join(shared_from_this());
  return std::nullopt;
}

std::optional<CallError> AppendStream::TakeRequests() {
  const absl::Status may = permit_.Recheck();
  if (!may.ok()) {  // APS6
    return NotAllowed(may);
  }
  const auto count = static_cast<size_t>(request_.requests().payloads_size());
  const v1::Durability durability = request_.requests().durability();
  if (auto error = CheckDurability(durability)) return error;
  by_ = durability == v1::DURABILITY_UNSPECIFIED ? stream_by_
                                                 : PersistedByOf(durability);
  if (count == 0 || count > kUnansweredMax) {
    return Invalid(absl::StrCat("a message of ", count,
                                " payloads: after `begin` each has 1 to ",
                                kUnansweredMax));
  }
  {
    const MutexLock lock(mutex_);
    unanswered_ += count;
    read_ns_ = log_counts_->Samples(count) ? counts_.NowNanos() : 0;
  }
  judged_ = 0;
  paid_ = 0;
  JudgeRest();
  return std::nullopt;
}

size_t AppendStream::TakeFromRates(size_t count) {
  if (!permit_.has_rates()) return count;
  const v1::AppendStreamRequest::Requests& requests = request_.requests();
  for (; paid_ < judged_ + count; ++paid_) {
    const v1::Payload& payload = requests.payloads(static_cast<int>(paid_));
    if (!permit_.Take(payload.ByteSizeLong())) return paid_ - judged_;
  }
  return count;
}

void AppendStream::JudgeRest() {
  for (bool is_again = false;; is_again = true) {
    SharedUse use;
    {
      const MutexLock lock(mutex_);
      // Drained or cancelled meanwhile: the rest is not admitted.
      if (is_ending_) return;
      use = use_;
      ++groups_;
    }
    const std::optional<Finding> refused = JudgeOnce(use);
    if (!refused || WaitForRoom(use)) return;
    // The cause that held the log up may be over by now.
    if (*refused == Finding::kHeldUp && !is_again) continue;
    {
      const MutexLock lock(mutex_);
      if (is_ending_) return;
      ++groups_;
    }
    RefuseRest(use, *refused);
    return;
  }
}

std::optional<Finding> AppendStream::JudgeOnce(const SharedUse& use) {
  std::optional<Finding> refused;
  Group group = {request_.requests().first().sequence() + judged_,
                 Append(**use, &refused)};
  judged_ += group.verdicts.size();
  if (const int64_t read_ns = std::exchange(read_ns_, 0); read_ns != 0) {
    group.appended_ns = counts_.NowNanos();
    (*use)->counts().NoteStage(service::AppendStage::kAppended,
                               group.appended_ns - read_ns);
  }
  {
    const MutexLock lock(mutex_);
    is_taking_ = refused.has_value();
  }
  Answer(use, std::move(group));
  return refused;
}

void AppendStream::RefuseRest(const SharedUse& use, Finding finding) {
  const auto count = static_cast<size_t>(request_.requests().payloads_size());
  Group group = {request_.requests().first().sequence() + judged_,
                 std::vector<Verdict>(count - judged_, {.finding = finding})};
  judged_ = count;
  {
    const MutexLock lock(mutex_);
    is_taking_ = false;
  }
  Answer(use, std::move(group));
}

std::vector<service::Verdict> AppendStream::Append(
    service::ServedLog& log, std::optional<Finding>* refused) {
  const v1::AppendStreamRequest::Requests& requests = request_.requests();
  const auto count = static_cast<size_t>(requests.payloads_size()) - judged_;
  service::Request number = NumberOf(requests.first(), resumption_);
  number.sequence += judged_;
  std::vector<AppendRequestParts> parts;
  parts.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    parts.emplace_back(client_, number,
                       requests.payloads(static_cast<int>(judged_ + i)));
    ++number.sequence;
  }
  const size_t let_in = Admissible(log, count);
  const size_t admissible = TakeFromRates(let_in);
  std::vector<service::AppendRequest> admitted;
  admitted.reserve(admissible);
  for (size_t i = 0; i < admissible; ++i) {
    admitted.push_back(parts[i].Get());
    admitted.back().max_exposed = max_exposed_;
  }
  std::vector<Verdict> verdicts;
  log.service().Append(epoch_, admitted, &verdicts);
  const auto stop = std::ranges::find_if(verdicts, [](const Verdict& verdict) {
    return verdict.finding == Finding::kNoRoom ||
           verdict.finding == Finding::kHeldUp ||
           verdict.finding == Finding::kTooExposed;
  });
  if (stop != verdicts.end() && stop->finding != Finding::kTooExposed) {
    *refused = stop->finding;
    verdicts.erase(stop, verdicts.end());
    return verdicts;
  }
  // A request behind one that is refused is refused for the same.
  const bool is_too_fast = stop == verdicts.end() && admissible < let_in;
  verdicts.erase(stop, verdicts.end());
  verdicts.resize(count, {.finding = is_too_fast ? Finding::kTooFast
                                                 : Finding::kTooExposed});
  return verdicts;
}

bool AppendStream::WaitForRoom(const SharedUse& use) {
  // On another thread: the log's has more to do than to append.
  return (*use)->service().AwaitRoom(
      [self = weak_from_this(), &tasks = tasks_] {
        tasks.Post([self] {
          if (const auto stream = self.lock()) stream->OnRoom();
        });
      });
}

void AppendStream::OnRoom() {
  JudgeRest();
  const MutexLock lock(mutex_);
  Advance();
}

size_t AppendStream::Admissible(service::ServedLog& log, size_t count) const {
  if (max_exposed_ == 0) return count;
  const uint64_t exposed = log.log().Exposed();
  if (exposed >= max_exposed_) return 0;
  return static_cast<size_t>(std::min<uint64_t>(count, max_exposed_ - exposed));
}

void AppendStream::Answer(const SharedUse& use, Group group) {
  service::ServedLog& log = **use;
  {
    const MutexLock lock(mutex_);
    for (size_t i = 0; i < group.verdicts.size(); ++i) {
      const Verdict& verdict = group.verdicts[i];
      if (!verdict.is_in_log()) continue;
      const uint64_t sequence = group.first_sequence + i;
      last_admitted_ = std::max(last_admitted_.value_or(0), sequence);
      if (tells_accepted_ && verdict.finding == Finding::kAppended) {
        AddToRuns(sequence, verdict.place, /*is_repeat=*/false,
                  answers_.mutable_accepted());
        has_answers_ = true;
      }
    }
  }
  const auto shared = std::make_shared<const Group>(std::move(group));
  log.Settle(
      shared->verdicts, by_,
      [self = shared_from_this(), shared, use](const absl::Status& status) {
        self->OnSettled(*shared, **use, status);
      });
}

void AppendStream::OnSettled(const Group& group, service::ServedLog& log,
                             const absl::Status& status) {
  const Lsn durable = log.log().durable_lsn();
  const MutexLock lock(mutex_);
  --groups_;
  if (group.verdicts.empty()) {
    // All of them wait for room.
  } else if (status.ok()) {
    AddAnswers(group);
    answers_.set_durable_lsn(durable.value);
    if (group.appended_ns != 0) NoteSettled(group, log.counts());
  } else if (std::exchange(is_in_order_, false)) {
    // The log has failed. Of all that was not answered the outcome is unknown.
    is_ending_ = true;
    end_ = UnknownOutcome(NameOf(group.first_sequence), status).ToStatus();
  }
  Advance();
}

void AppendStream::NoteSettled(const Group& group, service::LogCounts& log) {
  const int64_t now = counts_.NowNanos();
  log.NoteStage(service::AppendStage::kDurable, now - group.appended_ns);
  settled_ns_ = now;
}

void AppendStream::AddAnswers(const Group& group) {
  for (size_t i = 0; i < group.verdicts.size(); ++i) {
    const Verdict& verdict = group.verdicts[i];
    const uint64_t sequence = group.first_sequence + i;
    if (verdict.is_in_log()) {
      AddToRuns(sequence, verdict.place, verdict.finding == Finding::kRepeated,
                answers_.mutable_done());
      continue;
    }
    CallError error = ErrorOf(verdict, NameOf(sequence));
    v1::AppendStreamResponse::Refusal* const refusal = answers_.add_refused();
    refusal->set_sequence(sequence);
    refusal->set_code(error.code);
    refusal->set_message(std::move(error.message));
    *refusal->mutable_error() = std::move(error.error);
  }
  answers_count_ += group.verdicts.size();
  has_answers_ = true;
}

void AppendStream::OnWriteDone(bool ok) {
  const std::shared_ptr<AppendStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  is_writing_ = false;
  unanswered_ -= std::exchange(writing_count_, 0);
  if (const int64_t settled_ns = std::exchange(writing_settled_ns_, 0);
      settled_ns != 0 && ok) {
    log_counts_->NoteStage(service::AppendStage::kAnswered,
                           counts_.NowNanos() - settled_ns);
  }
  if (!ok) {
    is_broken_ = true;
    End(grpc::Status::CANCELLED);
  }
  Advance();
}

void AppendStream::OnCancel() {
  const std::shared_ptr<AppendStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  is_broken_ = true;
  End(grpc::Status::CANCELLED);
  Advance();
}

void AppendStream::OnDrain() {
  const std::shared_ptr<AppendStream> self = shared_from_this();
  const MutexLock lock(mutex_);
  End(HandedOver().ToStatus());
  Advance();
}

void AppendStream::End(grpc::Status status) {
  if (std::exchange(is_ending_, true)) return;
  end_ = std::move(status);
}

void AppendStream::Advance() {
  if (is_finished_) return;
  if (is_ending_ && groups_ == 0) {
    if (use_ != nullptr) (*use_)->Leave(this);
    use_.reset();  // APS3
    if (!is_writing_) Finish();
    return;
  }
  if (has_answers_ && !is_writing_ && !is_broken_) {
    writing_ = std::exchange(answers_, {});
    writing_count_ = std::exchange(answers_count_, 0);
    writing_settled_ns_ = std::exchange(settled_ns_, 0);
    has_answers_ = false;
    is_writing_ = true;
    StartWrite(&writing_);
  }
  if (!is_ending_ && !is_reading_ && !is_taking_ &&
      unanswered_ < kUnansweredMax) {  // APS1
    is_reading_ = true;
    StartRead(&request_);
  }
}

void AppendStream::Finish() {
  const bool says_last =
      is_in_order_ && last_admitted_.has_value() && !has_said_last_;
  if (!is_broken_ && (has_answers_ || says_last)) {
    writing_ = std::exchange(answers_, {});
    has_answers_ = false;
    if (says_last) writing_.set_last_admitted(*last_admitted_);  // APS2
    has_said_last_ |= says_last;
    is_writing_ = true;
    StartWrite(&writing_);
    return;
  }
  if (has_said_last_ && !is_broken_ && !has_client_ended_) {  // APS5
    if (!std::exchange(is_reading_, true)) StartRead(&request_);
    return;
  }
  is_finished_ = true;
  ServerBidiReactor::Finish(end_);
}

void AppendStream::OnDone() {
  const std::shared_ptr<AppendStream> last = std::move(self_);
  const MutexLock lock(mutex_);
  counts_.NoteStreamEnded(Method::kAppendStream, end_.error_code());
}

}  // namespace alpheus::rpc
