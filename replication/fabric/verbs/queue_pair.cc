// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/queue_pair.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "replication/fabric/verbs/region_key_parts.h"
#include "replication/fabric/work_request.h"

namespace alpheus::fabric::verbs {
namespace {

uint32_t SendsOf(const QueuePair::Making& making) {
  return making.limits.sends_max + kGreetingsPosted;
}
uint32_t ReceivesOf(const QueuePair::Making& making) {
  return making.limits.receives_max + kGreetingsPosted;
}

// Marks the numbers of receives: a failed completion has no opcode.
constexpr uint64_t kReceiveBit = uint64_t{1} << 63;

absl::Status Refused(const char* what, int error) {
  return absl::UnavailableError(
      absl::StrCat("the adapter refuses ", what, ": ", std::strerror(error)));
}

ibv_wr_opcode OpcodeOf(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Operation::kWriteImmediate:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Operation::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Operation::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Operation::kSend:
      return IBV_WR_SEND;
    default:  // a flush is one, too
      return IBV_WR_RDMA_READ;
  }
}

// Soft-RoCE reports REM_OP_ERR and LOC_QP_OP_ERR for a receive that is too
// small, and for one whose bytes are no longer registered.
CompletionStatus StatusOf(ibv_wc_status status, Operation operation) {
  const bool is_of_receive =
      operation == Operation::kSend || operation == Operation::kReceive;
  switch (status) {
    case IBV_WC_SUCCESS:
      return CompletionStatus::kOk;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return CompletionStatus::kLocalAccess;
    case IBV_WC_LOC_QP_OP_ERR:
      return operation == Operation::kReceive
                 ? CompletionStatus::kReceiveTooSmall
                 : CompletionStatus::kLocalAccess;
    case IBV_WC_LOC_LEN_ERR:
      return CompletionStatus::kReceiveTooSmall;
    case IBV_WC_REM_INV_REQ_ERR:
      return is_of_receive ? CompletionStatus::kReceiveTooSmall
                           : CompletionStatus::kRemoteAccess;
    case IBV_WC_REM_OP_ERR:
      return is_of_receive ? CompletionStatus::kReceiveTooSmall
                           : CompletionStatus::kPeerGone;
    case IBV_WC_REM_ACCESS_ERR:
      return CompletionStatus::kRemoteAccess;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return CompletionStatus::kReceiverNotReady;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return CompletionStatus::kPeerGone;
    default:
      return CompletionStatus::kFlushed;
  }
}

NativeAbilities AbilitiesOf(const Fabric::Limits& limits) {
  return {limits.native_flush, limits.atomic_write};
}

// An offset that overflows is outside of the peer's region.
uint64_t LastByteOf(const WorkRequest& flush) {
  const uint64_t last = flush.remote.offset + flush.range_bytes - 1;
  return last < flush.remote.offset ? std::numeric_limits<uint64_t>::max()
                                    : last;
}

}  // namespace

QueuePair::QueuePair(rdma_cm_id* id, ConnectionId connection,
                     const Making& making, CompletionQueue queue,
                     uint32_t inline_bytes_max)
    : id_(id),
      connection_(connection),
      queue_(std::move(queue)),
      inline_bytes_max_(inline_bytes_max),
      flush_target_(making.flush_target),
      counters_(*making.counters),
      news_(making.news),
      chain_(kChainMax),
      sends_(SendsOf(making)),
      receives_(ReceivesOf(making)) {
  const NativeAbilities abilities = AbilitiesOf(making.limits);
  if (abilities.any()) native_.emplace(abilities, &counters_);
}

absl::StatusOr<std::unique_ptr<QueuePair>> QueuePair::Make(
    rdma_cm_id* id, ConnectionId connection, const Making& making) {
  const uint32_t sends = SendsOf(making);
  const uint32_t receives = ReceivesOf(making);
  const uint32_t entries = sends + receives;
  CompletionQueue queue(ibv_create_cq(id->verbs, static_cast<int>(entries),
                                      nullptr, making.channel, 0));  // QP2
  if (!queue) return Refused("a completion queue", errno);
  ibv_qp_init_attr attributes = {};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = queue.get();
  attributes.recv_cq = queue.get();
  attributes.cap.max_send_wr = sends;
  attributes.cap.max_recv_wr = receives;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  attributes.cap.max_inline_data = making.inline_bytes_max;
  const NativeAbilities abilities = AbilitiesOf(making.limits);
  if (MakePair(id, making.domain, abilities, &attributes) != 0) {
    // An adapter shows its inline limit only by refusing more.
    attributes.cap.max_inline_data = 0;
    if (MakePair(id, making.domain, abilities, &attributes) != 0) {
      return Refused("a queue pair", errno);
    }
  }
  std::unique_ptr<QueuePair> pair(new QueuePair(
      id, connection, making, std::move(queue),
      std::min(making.inline_bytes_max, attributes.cap.max_inline_data)));
  pair->Arm();
  return pair;
}

// --- Posting ----------------------------------------------------------------

void QueuePair::Post(const WorkRequest& request, const ibv_sge& own) {
  Entry& entry = Append({request.operation, request.work});
  Fill(request, own, &entry);
  if (native_) {
    native_->OnPost(request, entry.request.wr_id, sends_.first(),
                    &entry.request, &entry.own);
  }
}

void QueuePair::Fill(const WorkRequest& request, const ibv_sge& own,
                     Entry* entry) const {
  entry->own = own;
  ibv_send_wr& to = entry->request;
  to.opcode = OpcodeOf(request.operation);
  to.imm_data = htobe32(request.immediate);
  const RegionKeyParts parts = PartsOf(request.remote.key);
  const uint64_t address = parts.address() + request.remote.offset;
  switch (request.operation) {
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      to.wr.atomic.remote_addr = address;
      to.wr.atomic.compare_add = request.operands[0];
      to.wr.atomic.swap = request.operands[1];
      to.wr.atomic.rkey = parts.rkey;
      return;
    case Operation::kFlush: {
      const bool is_empty = request.range_bytes == 0;
      entry->own = is_empty ? ibv_sge{} : flush_target_;
      to.wr.rdma.remote_addr =
          parts.address() + (is_empty ? 0 : LastByteOf(request));
      to.wr.rdma.rkey = parts.rkey;
      return;
    }
    default:  // sends have no use for the address
      to.wr.rdma.remote_addr = address;
      to.wr.rdma.rkey = parts.rkey;
      if (!Fetches(request.operation)) SetInline(request.local, entry);
  }
}

void QueuePair::PostGreeting(const ibv_sge& own) {
  Entry& entry = Append({Operation::kSend, WorkId(), /*is_greeting=*/true});
  entry.request.opcode = IBV_WR_SEND;
  entry.own = own;
}

// Filled in place: a request is 128 bytes, and each record takes one.
QueuePair::Entry& QueuePair::Append(const Send& send) {
  ALPHEUS_CHECK(!is_chain_full(),
                "a full chain must be handed to the adapter first");
  ALPHEUS_CHECK(sends_.size() < sends_.room(), "QP2: more than may be posted");
  Entry& entry = chain_[chained_++];
  entry.request.wr_id = sends_.next();
  entry.request.send_flags = 0;
  if (fetches_ > 0) {
    entry.request.send_flags = IBV_SEND_FENCE;  // QP4
  }
  if (Fetches(send.operation)) ++fetches_;
  sends_.Push(send);
  ++counters_.posts;
  return entry;
}

void QueuePair::SetInline(const LocalBytes& from, Entry* entry) const {
  if (from.bytes.empty() || from.bytes.size() > inline_bytes_max_) return;
  entry->request.send_flags |= IBV_SEND_INLINE;
  // The library copies, and knows no made-up addresses.
  entry->own.addr = reinterpret_cast<uintptr_t>(from.bytes.data());
  ++counters_.inlined;
}

absl::Status QueuePair::RingDoorbell() {
  if (chained_ == 0) return absl::OkStatus();
  for (size_t i = 0; i < chained_; ++i) {
    Entry& entry = chain_[i];
    const bool is_last = i + 1 == chained_;
    entry.request.next = is_last ? nullptr : &chain_[i + 1].request;
    if (is_last) entry.request.send_flags |= IBV_SEND_SIGNALED;
    entry.request.sg_list = &entry.own;
    entry.request.num_sge = entry.own.length > 0 ? 1 : 0;
  }
  ibv_send_wr* bad = nullptr;
  const int error = native_ && native_->EndChain()
                        ? PostNative(id_->qp, &chain_.front().request)
                        : ibv_post_send(id_->qp, &chain_.front().request, &bad);
  chained_ = 0;
  ++counters_.doorbells;
  ++counters_.signalled;
  return error == 0 ? absl::OkStatus() : Refused("work requests", error);
}

absl::Status QueuePair::PostReceive(WorkId work, const ibv_sge& into,
                                    bool is_greeting) {
  ibv_sge own = into;
  ibv_recv_wr request = {};
  request.wr_id = receives_.next() | kReceiveBit;
  if (own.length > 0) {
    request.sg_list = &own;
    request.num_sge = 1;
  }
  ALPHEUS_CHECK(receives_.size() < receives_.room(),
                "QP2: more than may be posted");
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(id_->qp, &request, &bad);
  if (error != 0) return Refused("a receive", error);
  receives_.Push({work, is_greeting});
  ++counters_.receives;
  return absl::OkStatus();
}

absl::Status QueuePair::SetNotReadyTimer(uint8_t code) {
  ibv_qp_attr attributes = {};
  attributes.min_rnr_timer = code;
  const int error = ibv_modify_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
  return error == 0 ? absl::OkStatus() : Refused("a timer", error);
}

// --- Completing -------------------------------------------------------------

bool QueuePair::DrainCompletions(const Done& done) {
  std::array<ibv_wc, 16> completions;
  for (;;) {
    const int count = ibv_poll_cq(
        queue_.get(), static_cast<int>(completions.size()), completions.data());
    if (count < 0) return false;  // FB9
    counters_.completions += static_cast<uint64_t>(count);
    for (int i = 0; i < count; ++i) {
      is_whole_ &= OnCompletion(completions[static_cast<size_t>(i)], done);
    }
    if (count < static_cast<int>(completions.size())) return is_whole_;
  }
}

bool QueuePair::OnCompletion(const ibv_wc& completion, const Done& done) {
  // Flush reports the rest, sends before receives.
  if (completion.status == IBV_WC_WR_FLUSH_ERR) return false;
  return (completion.wr_id & kReceiveBit) != 0 ? OnReceive(completion, done)
                                               : OnSends(completion, done);
}

// All entries up to the completed one are done.
bool QueuePair::OnSends(const ibv_wc& completion, const Done& done) {
  ALPHEUS_CHECK(completion.wr_id - sends_.first() < sends_.size(),
                "QP1: the adapter completed what was not posted");
  for (;;) {
    const bool is_it = sends_.first() == completion.wr_id;
    const Send send = sends_.Pop();
    const CompletionStatus status =
        is_it ? StatusOf(completion.status, send.operation)
              : CompletionStatus::kOk;
    (send.is_greeting ? done.greetings : done.completions)
        ->push_back({connection_, send.work, send.operation, status});
    if (status == CompletionStatus::kReceiverNotReady) {
      ++counters_.receiver_not_ready;
    }
    if (Fetches(send.operation)) --fetches_;
    if (is_it) return completion.status == IBV_WC_SUCCESS;
  }
}

bool QueuePair::OnReceive(const ibv_wc& completion, const Done& done) {
  ALPHEUS_CHECK(!receives_.empty() &&
                    (completion.wr_id & ~kReceiveBit) == receives_.first(),
                "QP1: the adapter completed what was not posted");
  const Receive receive = receives_.Pop();
  const bool is_ok = completion.status == IBV_WC_SUCCESS;
  const bool is_immediate =
      is_ok && completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  (receive.is_greeting ? done.greetings : done.completions)
      ->push_back(
          {connection_, receive.work,
           is_immediate ? Operation::kReceiveImmediate : Operation::kReceive,
           StatusOf(completion.status, Operation::kReceive),
           is_ok ? completion.byte_len : 0,
           is_immediate ? be32toh(completion.imm_data) : 0});
  return is_ok;
}

void QueuePair::Arm() {
  // Fails only for a destroyed queue.
  (void)ibv_req_notify_cq(queue_.get(), /*solicited_only=*/0);
}

void QueuePair::Destroy() {
  if (id_->qp == nullptr) return;
  const int error = ibv_destroy_qp(id_->qp);
  ALPHEUS_CHECK(
      error == 0 || (error == EIO && news_ != nullptr && news_->IsGone()),
      "QP3: a fence that does not hold is none");
  id_->qp = nullptr;
  ibv_ack_cq_events(queue_.get(), std::exchange(events_, 0));
  chained_ = 0;
}

void QueuePair::Flush(const Done& done) {
  while (!sends_.empty()) {
    const Send send = sends_.Pop();
    (send.is_greeting ? done.greetings : done.completions)
        ->push_back({connection_, send.work, send.operation,
                     CompletionStatus::kFlushed});
  }
  while (!receives_.empty()) {
    const Receive receive = receives_.Pop();
    (receive.is_greeting ? done.greetings : done.completions)
        ->push_back({connection_, receive.work, Operation::kReceive,
                     CompletionStatus::kFlushed});
  }
}

}  // namespace alpheus::fabric::verbs
