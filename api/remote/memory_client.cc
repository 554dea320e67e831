// SPDX-License-Identifier: Apache-2.0
#include "api/remote/memory_client.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "api/grpc/access/crypto.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "quorum/members/log_id.h"
#include "replication/persist/plan/update_cost.h"

namespace alpheus::remote {
namespace {

using fabric::ConnectionEvent;
using replication::StepAction;

// Work ids: control messages, operations; those of updates are small.
constexpr uint64_t kMessageWork = uint64_t{1} << 62;
constexpr uint64_t kOperationWork = uint64_t{1} << 63;
// Slot of the node's messages; those of this client follow.
constexpr size_t kAnswerSlot = 0;
// Posts that updates have in flight, beside operations.
constexpr uint32_t kPostsOfUpdates = 8;

constexpr uint64_t kWordBytes = sizeof(uint64_t);

absl::Status BadOptions(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "remote memory: ", absl::string_view(why.data(), why.size())));
}

// A node without memory for clients, or of an older version, rejects as it does
// other nodes.
absl::Status RefusalOf(const std::string& address,
                       std::string_view private_data) {
  const absl::Status why = recovery::DecodeClientRejection(private_data);
  return absl::Status(
      why.code(), absl::StrCat("node at ", address, ": ", why.message(),
                               ". Nothing was done. A node that offers clients "
                               "no memory, or of an older version, says no "
                               "more"));
}

absl::Status Untrusted() {
  return absl::UnauthenticatedError(
      "the node has not proved that it has this token's digest: another "
      "process answers at its address. Nothing that it says is believed");
}

}  // namespace

MemoryClient::MemoryClient(fabric::Fabric& fabric, const Clock& clock,
                           RandomSource& random, MemoryClientOptions options)
    : fabric_(fabric),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      log_id_(quorum::LogIdOf(options_.cluster_id, options_.log)),
      digest_(rpc::Sha256(options_.token)) {}

MemoryClient::~MemoryClient() {
  // Before the memory that operations in flight use.
  if (stage_ != Stage::kOver) fabric_.Close(connection_).IgnoreError();
}

absl::Status MemoryClient::Check(const MemoryClientOptions& options,
                                 const fabric::Fabric::Limits& limits) {
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log));
  if (options.token.empty() ||
      options.token.size() > recovery::kMaskedTokenBytesMax) {
    return BadOptions(absl::StrCat("a token of ", options.token.size(),
                                   " bytes; one has 1 to ",
                                   recovery::kMaskedTokenBytesMax));
  }
  std::vector<std::string> names = options.read;
  if (!options.updated.empty()) names.push_back(options.updated);
  if (names.empty()) return BadOptions("no region is named");
  for (const std::string& name : names) {
    if (name.empty() || name.size() > recovery::kMemoryNameBytesMax) {
      return BadOptions(absl::StrCat("a region's name of ", name.size(),
                                     " bytes; one has 1 to ",
                                     recovery::kMemoryNameBytesMax));
    }
    if (std::ranges::count(names, name) > 1) {
      return BadOptions(absl::StrCat("region ", name, " is named twice"));
    }
  }
  const bool fits =
      options.in_flight_max >= 1 &&
      options.in_flight_max + kPostsOfUpdates <= limits.sends_max &&
      options.operation_bytes_max >= kWordBytes &&
      options.operation_bytes_max <= limits.message_bytes_max;
  if (fits) return absl::OkStatus();
  return BadOptions(absl::StrCat(
      options.in_flight_max, " operations of up to ",
      options.operation_bytes_max, " bytes; this adapter has ",
      limits.sends_max, " sends, of which updates take ", kPostsOfUpdates,
      ", of up to ", limits.message_bytes_max, " bytes"));
}

absl::StatusOr<std::unique_ptr<MemoryClient>> MemoryClient::Connect(
    fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
    std::string_view address, MemoryClientOptions options) {
  ALPHEUS_RETURN_IF_ERROR(Check(options, fabric.limits()));
  std::unique_ptr<MemoryClient> client(
      new MemoryClient(fabric, clock, random, std::move(options)));
  // Nothing is to be closed if it fails.
  client->stage_ = Stage::kOver;
  ALPHEUS_RETURN_IF_ERROR(client->Prepare(address));
  client->stage_ = Stage::kConnecting;
  return client;
}

absl::Status MemoryClient::Prepare(std::string_view address) {
  address_ = std::string(address);
  ALPHEUS_ASSIGN_OR_RETURN(messages_, replication::MessageSlots::Make(
                                          fabric_, 2 + region_count(),
                                          recovery::kClientMessageBytesMax));
  ALPHEUS_ASSIGN_OR_RETURN(
      memory_, replication::MessageSlots::Make(
                   fabric_, options_.in_flight_max,
                   RoundUp(options_.operation_bytes_max, kWordBytes)));
  slots_.resize(options_.in_flight_max);
  for (size_t slot = slots_.size(); slot-- > 0;) free_.push_back(slot);
  said_.hello = {.cluster_id = options_.cluster_id,
                 .log_id = log_id_,
                 .token_name = TokenNameOf(digest_)};
  began_at_ = clock_.NowNanos();
  ALPHEUS_ASSIGN_OR_RETURN(
      connection_,
      fabric_.Connect(address, recovery::EncodeClientHello(said_.hello),
                      Deadline::AtNanos(began_at_ + options_.open_ns_max)));
  return absl::OkStatus();
}

// --- Opening -----------------------------------------------------------------

bool MemoryClient::OnConnectionEvent(const ConnectionEvent& event) {
  if (stage_ == Stage::kOver || event.connection != connection_) return false;
  absl::Status status;
  switch (event.kind) {
    case ConnectionEvent::Kind::kRequested:
      return false;
    case ConnectionEvent::Kind::kEstablished:
      status = OnEstablished(event.private_data);
      break;
    case ConnectionEvent::Kind::kRejected:
      status = RefusalOf(address_, event.private_data);
      break;
    case ConnectionEvent::Kind::kUnreachable:
      status = absl::UnavailableError(absl::StrCat(
          "node at ", address_, " can't be reached",
          event.why.empty() ? "" : ": ", event.why, ". Nothing was done"));
      break;
    case ConnectionEvent::Kind::kDisconnected:
      status = absl::UnavailableError(
          absl::StrCat("the connection to the node at ", address_, " ended"));
      break;
  }
  if (!status.ok()) Break(status);
  return true;
}

absl::Status MemoryClient::OnEstablished(const std::string& private_data) {
  ALPHEUS_ASSIGN_OR_RETURN(said_.welcome,
                           recovery::DecodeClientWelcome(private_data));
  said_.nonce = {};
  while (said_.nonce == recovery::Nonce()) {
    said_.nonce = {random_.Next(), random_.Next()};
  }
  stage_ = Stage::kProving;
  return Send(recovery::ClientProof{said_.nonce,
                                    MaskToken(options_.token, digest_, said_)});
}

// Each message has a slot of its own.
absl::Status MemoryClient::Send(const recovery::ClientMessage& message) {
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostReceive(
      connection_, fabric::WorkId(kMessageWork), messages_->At(kAnswerSlot)));
  const std::vector<std::byte> bytes =
      recovery::EncodeClientMessage(log_id_, message);
  fabric::LocalBytes slot = messages_->At(++sent_);
  std::ranges::copy(bytes, slot.bytes.begin());
  slot.bytes = slot.bytes.first(bytes.size());
  return fabric_.PostSend(connection_, fabric::WorkId(kMessageWork + sent_),
                          slot);
}

absl::Status MemoryClient::OnMessage(const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    return absl::UnavailableError(
        absl::StrCat("the connection to the node at ", address_,
                     " broke: ", fabric::OperationName(completion.operation),
                     ": ", fabric::CompletionStatusName(completion.status)));
  }
  if (completion.operation != fabric::Operation::kReceive) {
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const recovery::ClientMessage message,
      recovery::DecodeClientMessage(
          log_id_, messages_->At(kAnswerSlot).bytes.first(completion.bytes)));
  return OnReply(message);
}

absl::Status MemoryClient::OnReply(const recovery::ClientMessage& message) {
  if (const auto* refused = std::get_if<recovery::ClientRefused>(&message)) {
    return absl::Status(
        refused->why.code(),
        absl::StrCat("node at ", address_, ": ", refused->why.message()));
  }
  if (const auto* proved = std::get_if<recovery::ClientProved>(&message);
      proved != nullptr && stage_ == Stage::kProving) {
    // MCL5.
    if (!quorum::AreSame(proved->proof, ProofOfNode(digest_, said_))) {
      return Untrusted();
    }
    stage_ = Stage::kOpening;
    return OpenNext();
  }
  if (const auto* opened = std::get_if<recovery::MemoryOpened>(&message);
      opened != nullptr && stage_ == Stage::kOpening) {
    return OnOpened(*opened);
  }
  return absl::UnavailableError(absl::StrCat(
      "the node at ", address_,
      " sent a message that is not due. Run client and node of one version"));
}

absl::Status MemoryClient::OpenNext() {
  const size_t next = regions_.size();
  if (next < options_.read.size()) {
    return Send(recovery::OpenMemory{options_.read[next], false});
  }
  return Send(recovery::OpenMemory{options_.updated, true});
}

absl::Status MemoryClient::OnOpened(const recovery::MemoryOpened& opened) {
  const bool is_updated = regions_.size() == options_.read.size();
  if (is_updated != (opened.session != 0)) {
    return absl::UnavailableError(
        absl::StrCat("the node at ", address_,
                     " opened another region than was asked for. "
                     "Run client and node of one version"));
  }
  regions_.push_back({opened.key, opened.bytes, opened.platform});
  if (is_updated) {
    plan_ = replication::PlanOfTable(opened.platform,
                                     replication::UpdateKind::kSingleton,
                                     replication::UpdateOperation::kWrite);
    for (const replication::Step& step : plan_.steps) {
      if (!replication::UpdateRequester::IsOfWrite(step)) {
        steps_of_persist_.push_back(step);
      }
    }
    ALPHEUS_ASSIGN_OR_RETURN(
        requester_, replication::UpdateRequester::Start(
                        plan_.steps,
                        {.session = replication::SessionId(opened.session),
                         .credits = opened.credits,
                         .message_bytes_max = opened.message_bytes_max},
                        fabric_, connection_));
  }
  if (regions_.size() < region_count()) return OpenNext();
  stage_ = Stage::kOpen;
  return absl::OkStatus();
}

// --- Operations --------------------------------------------------------------

absl::Status MemoryClient::CheckPlace(size_t region, uint64_t offset,
                                      uint64_t bytes, bool is_update) const {
  if (!is_open()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the connection to the node at ", address_,
                     status_.ok() ? " is not open yet" : " is over",
                     ". Nothing was posted; connect again"));
  }
  if (is_update && options_.updated.empty()) {
    return absl::FailedPreconditionError(
        "no region was opened for updates. Nothing was posted; name one in the "
        "options");
  }
  if (region >= regions_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("region ", region, " of ", regions_.size()));
  }
  const uint64_t size = regions_[region].bytes;
  const bool is_inside = offset <= size && bytes <= size - offset;
  if (bytes > 0 && bytes <= options_.operation_bytes_max && is_inside) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      bytes, " bytes at ", offset, " of a region of ", size,
      " bytes; an operation has 1 to ", options_.operation_bytes_max));
}

absl::StatusOr<size_t> MemoryClient::TakeSlot(Kind kind, uint64_t offset,
                                              uint64_t bytes) {
  // MCL4.
  if (free_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(slots_.size(),
                     " operations are in flight, the most that may. Nothing "
                     "was posted; wait for one"));
  }
  const size_t slot = free_.back();
  free_.pop_back();
  slots_[slot] = {.kind = kind,
                  .offset = offset,
                  .bytes = bytes,
                  .began_at = clock_.NowNanos(),
                  .is_taken = true};
  return slot;
}

void MemoryClient::GiveBack(size_t slot) {
  slots_[slot] = {};
  free_.push_back(slot);
}

fabric::LocalBytes MemoryClient::Memory(size_t slot) const {
  fabric::LocalBytes memory = memory_->At(slot);
  memory.bytes = memory.bytes.first(slots_[slot].bytes);
  return memory;
}

absl::Status MemoryClient::Posted(size_t slot, const absl::Status& posted) {
  if (!posted.ok()) {
    GiveBack(slot);
    return posted;
  }
  slots_[slot].is_posted = true;
  Count(slots_[slot]);
  return absl::OkStatus();
}

absl::Status MemoryClient::Read(size_t region, uint64_t offset,
                                std::span<std::byte> into, Done done) {
  ALPHEUS_RETURN_IF_ERROR(
      CheckPlace(region, offset, into.size(), /*is_update=*/false));
  ALPHEUS_ASSIGN_OR_RETURN(const size_t slot,
                           TakeSlot(Kind::kRead, offset, into.size()));
  slots_[slot].into = into;
  slots_[slot].done = std::move(done);
  return Posted(
      slot, fabric_.PostRead(connection_, fabric::WorkId(kOperationWork + slot),
                             Memory(slot), {regions_[region].key, offset}));
}

absl::Status MemoryClient::CompareAndSwap(uint64_t offset, uint64_t expected,
                                          uint64_t desired, Swapped done) {
  ALPHEUS_RETURN_IF_ERROR(CheckPlace(options_.read.size(), offset, kWordBytes,
                                     /*is_update=*/true));
  if (offset % kWordBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a word at ", offset, ": it lies on a multiple of ", kWordBytes));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const size_t slot,
                           TakeSlot(Kind::kSwap, offset, kWordBytes));
  slots_[slot].swapped = std::move(done);
  return Posted(slot, fabric_.PostCompareSwap(
                          connection_, fabric::WorkId(kOperationWork + slot),
                          Memory(slot), {regions_.back().key, offset}, expected,
                          desired));
}

absl::Status MemoryClient::Update(uint64_t offset,
                                  std::span<const std::byte> bytes, Done done) {
  ALPHEUS_RETURN_IF_ERROR(CheckPlace(options_.read.size(), offset, bytes.size(),
                                     /*is_update=*/true));
  ALPHEUS_ASSIGN_OR_RETURN(const size_t slot,
                           TakeSlot(Kind::kUpdate, offset, bytes.size()));
  slots_[slot].done = std::move(done);
  std::ranges::copy(bytes, Memory(slot).bytes.begin());
  updates_.push_back(slot);
  const absl::Status posted = PostUpdates();
  if (!posted.ok()) Break(posted);
  return absl::OkStatus();
}

absl::Status MemoryClient::Persist(uint64_t offset, uint64_t bytes, Done done) {
  ALPHEUS_RETURN_IF_ERROR(CheckPlace(options_.read.size(), offset, bytes,
                                     /*is_update=*/true));
  ALPHEUS_ASSIGN_OR_RETURN(const size_t slot,
                           TakeSlot(Kind::kPersist, offset, bytes));
  slots_[slot].done = std::move(done);
  updates_.push_back(slot);
  const absl::Status posted = PostUpdates();
  if (!posted.ok()) Break(posted);
  return absl::OkStatus();
}

// Begins the next update, and ends those that have ended: one after the other.
absl::Status MemoryClient::PostUpdates() {
  while (!updates_.empty()) {
    const size_t slot = updates_.front();
    Operation& operation = slots_[slot];
    if (!operation.is_posted) {
      if (!requester_->CanPost()) return absl::OkStatus();
      operation.is_posted = true;
      Count(operation);
      ALPHEUS_RETURN_IF_ERROR(requester_->Post(
          {.a = {Memory(slot), {regions_.back().key, operation.offset}},
           .is_there = operation.kind == Kind::kPersist}));
    }
    // MCL2.
    if (requester_->persisted() != requester_->posted()) {
      return absl::OkStatus();
    }
    updates_.pop_front();
    EndOf(slot, absl::OkStatus());
  }
  return absl::OkStatus();
}

void MemoryClient::Count(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kRead:
      ++counters_.reads;
      break;
    case Kind::kSwap:
      ++counters_.swaps;
      counters_.bytes_sent += 2 * kWordBytes;
      break;
    case Kind::kUpdate:
      ++counters_.updates;
      break;
    case Kind::kPersist:
      ++counters_.persists;
      break;
  }
  if (operation.kind == Kind::kRead || operation.kind == Kind::kSwap) {
    ++counters_.messages;
    ++counters_.round_trips;
    counters_.bytes_received += operation.bytes;
    return;
  }
  const replication::UpdateCost cost = replication::UpdateCostOf(
      operation.kind == Kind::kUpdate ? plan_.steps : steps_of_persist_,
      replication::SizesOfUpdate(operation.bytes, 0));
  counters_.messages += cost.operations();
  counters_.acks += cost.acks;
  counters_.bytes_sent += cost.bytes;
  counters_.bytes_received += cost.ack_bytes;
  counters_.round_trips += cost.round_trips;
}

bool MemoryClient::OnCompletion(const fabric::Completion& completion) {
  if (completion.connection != connection_) return false;
  // Closed, and its work has ended with it.
  if (stage_ == Stage::kOver) return true;
  const uint64_t work = completion.work.value;
  if ((work & kOperationWork) != 0) {
    OnOperation(work - kOperationWork, completion);
    return true;
  }
  const absl::Status status = (work & kMessageWork) != 0
                                  ? OnMessage(completion)
                                  : OnUpdated(completion);
  if (!status.ok()) Break(status);
  return true;
}

absl::Status MemoryClient::OnUpdated(const fabric::Completion& completion) {
  if (completion.status == fabric::CompletionStatus::kRemoteAccess) {
    return absl::PermissionDeniedError(
        absl::StrCat("the node at ", address_, " takes no more updates: ",
                     fabric::CompletionStatusName(completion.status)));
  }
  ALPHEUS_RETURN_IF_ERROR(requester_->OnCompletion(completion));
  return PostUpdates();
}

void MemoryClient::OnOperation(size_t slot,
                               const fabric::Completion& completion) {
  if (completion.status == fabric::CompletionStatus::kOk) {
    return EndOf(slot, absl::OkStatus());
  }
  const std::string why =
      absl::StrCat("the connection to the node at ", address_,
                   " broke: ", fabric::OperationName(completion.operation),
                   " at ", slots_[slot].offset, ": ",
                   fabric::CompletionStatusName(completion.status));
  Break(completion.status == fabric::CompletionStatus::kRemoteAccess
            ? absl::PermissionDeniedError(why)
            : absl::UnavailableError(why));
}

void MemoryClient::EndOf(size_t slot, const absl::Status& status) {
  slots_[slot].is_over = true;
  slots_[slot].status = status;
  finished_.push_back(slot);
}

// MCL3.
void MemoryClient::Break(const absl::Status& why) {
  if (stage_ == Stage::kOver) return;
  stage_ = Stage::kOver;
  status_ = why;
  // A fence: no operation touches the slots any more.
  fabric_.Close(connection_).IgnoreError();
  updates_.clear();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const Operation& operation = slots_[slot];
    if (!operation.is_taken || operation.is_over) continue;
    const char* const outcome =
        !operation.is_posted ? ". Nothing of this operation was posted"
        : operation.kind != Kind::kRead
            ? ". Its outcome is unknown: connect again, and look"
            : "";
    EndOf(slot, absl::Status(why.code(), absl::StrCat(why.message(), outcome)));
  }
}

void MemoryClient::CallBack(size_t slot) {
  Operation& operation = slots_[slot];
  const absl::Status status = operation.status;
  const Done done = std::move(operation.done);
  const Swapped swapped = std::move(operation.swapped);
  uint64_t found = 0;
  if (status.ok() && operation.kind == Kind::kRead) {
    std::ranges::copy(Memory(slot).bytes, operation.into.begin());
  }
  if (status.ok() && operation.kind == Kind::kSwap) {
    std::memcpy(&found, Memory(slot).bytes.data(), sizeof(found));
  }
  // Before the call, which may begin another.
  GiveBack(slot);
  if (done) done(status);
  if (swapped && status.ok()) swapped(found);
  if (swapped && !status.ok()) swapped(status);
}

Polled MemoryClient::Poll() {
  const Stage before = stage_;
  const Deadline next = NextPoll();
  if (stage_ != Stage::kOver && finished_.empty() &&
      next.HasPassed(clock_.NowNanos())) {
    Break(absl::UnavailableError(absl::StrCat(
        "the node at ", address_, " did not answer within ",
        (is_open() ? options_.operation_ns_max : options_.open_ns_max) /
            kNanosPerMs,
        " ms")));
  }
  const bool any = !finished_.empty();
  while (!finished_.empty()) {
    const size_t slot = finished_.front();
    finished_.pop_front();
    CallBack(slot);
  }
  if (stage_ == Stage::kOver) return Polled::kDone;
  return any || stage_ != before ? Polled::kMoved : Polled::kIdle;
}

Deadline MemoryClient::NextPoll() const {
  if (!finished_.empty()) return Deadline::AtNanos(clock_.NowNanos());
  if (stage_ == Stage::kOver) return Deadline();
  if (!is_open()) return Deadline::AtNanos(began_at_ + options_.open_ns_max);
  Deadline next;
  for (const Operation& operation : slots_) {
    if (!operation.is_taken) continue;
    const int64_t due = operation.began_at + options_.operation_ns_max;
    if (due < next.at_nanos()) next = Deadline::AtNanos(due);
  }
  return next;
}

}  // namespace alpheus::remote
