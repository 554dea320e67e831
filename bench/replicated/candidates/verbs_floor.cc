// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/verbs_floor.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/floor_replica.h"
#include "bench/replicated/candidates/rdma_hosts.h"
#include "bench/replicated/candidates/system_error.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "replication/fabric/socket_address.h"
#include "replication/fabric/verbs/handles.h"
#include "replication/wire/ack.h"

namespace alpheus::bench::replicated {

using fabric::verbs::CommunicationId;

namespace {

constexpr uint32_t kPairReceives = 64;
constexpr uint32_t kPairSends = 64;
// One request in this many is signalled.
constexpr uint32_t kSignalEvery = 32;
constexpr uint32_t kInlineBytes = 220;
constexpr int kResolveMs = 2'000;
// Same value as in bare_fabric.cc.
constexpr uint32_t kPairNextShift = 31;

// Where a backup's memory is, as its acceptance says.
struct BackupPlace {
  uint64_t address = 0;
  uint32_t rkey = 0;
};

// A connection, its queues, and how what comes is waited for.
class QueuePair {
 public:
  // `manager` has an adapter.
  static absl::StatusOr<std::unique_ptr<QueuePair>> Make(
      CommunicationId manager) {
    auto made = std::make_unique<QueuePair>(std::move(manager));
    rdma_cm_id* const id = made->manager_.get();
    made->domain_.reset(ibv_alloc_pd(id->verbs));
    made->channel_.reset(ibv_create_comp_channel(id->verbs));
    made->received_.reset(ibv_create_cq(id->verbs, kPairReceives, nullptr,
                                        made->channel_.get(), 0));
    made->sent_.reset(
        ibv_create_cq(id->verbs, kPairSends, nullptr, nullptr, 0));
    if (!made->domain_ || !made->received_ || !made->sent_) {
      return SystemError("queues of an adapter");
    }
    ibv_qp_init_attr attributes = {};
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = made->sent_.get();
    attributes.recv_cq = made->received_.get();
    attributes.cap = {.max_send_wr = kPairSends,
                      .max_recv_wr = kPairReceives,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = kInlineBytes};
    if (rdma_create_qp(id, made->domain_.get(), &attributes) != 0) {
      return SystemError("rdma_create_qp");
    }
    return made;
  }

  explicit QueuePair(CommunicationId manager) : manager_(std::move(manager)) {}
  ~QueuePair() {
    if (manager_->qp == nullptr) return;
    rdma_disconnect(manager_.get());
    rdma_destroy_qp(manager_.get());
  }

  rdma_cm_id* id() const { return manager_.get(); }

  // Once only; for as long as the queue pair lives.
  absl::StatusOr<ibv_mr*> Register(std::span<std::byte> bytes, int access) {
    regions_.emplace_back(
        ibv_reg_mr(domain_.get(), bytes.data(), bytes.size(), access));
    if (!regions_.back()) return SystemError("ibv_reg_mr");
    return regions_.back().get();
  }

  absl::Status PostReceive(uint64_t slot, ibv_sge* into) {
    ibv_recv_wr request = {};
    request.wr_id = slot;
    request.sg_list = into;
    request.num_sge = into == nullptr ? 0 : 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(manager_->qp, &request, &bad) == 0
               ? absl::OkStatus()
               : SystemError("ibv_post_recv");
  }

  absl::Status Post(ibv_send_wr request) {
    if (++posted_ % kSignalEvery == 0) request.send_flags |= IBV_SEND_SIGNALED;
    if (request.sg_list->length <= kInlineBytes) {
      request.send_flags |= IBV_SEND_INLINE;
    }
    // At most one earlier request is left.
    if (posted_ % kSignalEvery == 0) {
      std::array<ibv_wc, kPairSends / kSignalEvery> done{};
      if (ibv_poll_cq(sent_.get(), static_cast<int>(done.size()), done.data()) <
          0) {
        return SystemError("ibv_poll_cq");
      }
    }
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(manager_->qp, &request, &bad) == 0
               ? absl::OkStatus()
               : SystemError("ibv_post_send");
  }

  // The next thing that was received. Errors: OutOfRange (the peer has gone),
  // Unavailable.
  absl::StatusOr<ibv_wc> Next(Waiting waiting) {
    for (;;) {
      ibv_wc done = {};
      const int count = ibv_poll_cq(received_.get(), 1, &done);
      if (count < 0) return SystemError("ibv_poll_cq");
      if (count == 0) {
        ALPHEUS_RETURN_IF_ERROR(Wait(waiting));
        continue;
      }
      if (done.status == IBV_WC_SUCCESS) return done;
      return absl::OutOfRangeError(
          absl::StrCat("verbs: ", ibv_wc_status_str(done.status)));
    }
  }

 private:
  absl::Status Wait(Waiting waiting) {
    if (waiting == Waiting::kSpin) {
      sched_yield();
      return absl::OkStatus();
    }
    // The queue is looked at once more when it has been armed.
    if (!is_armed_) {
      is_armed_ = true;
      return ibv_req_notify_cq(received_.get(), 0) == 0
                 ? absl::OkStatus()
                 : SystemError("ibv_req_notify_cq");
    }
    is_armed_ = false;
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel_.get(), &queue, &context) != 0) {
      return SystemError("ibv_get_cq_event");
    }
    ibv_ack_cq_events(queue, 1);
    return absl::OkStatus();
  }

  CommunicationId manager_;
  fabric::verbs::ProtectionDomain domain_;
  fabric::verbs::CompletionChannel channel_;
  fabric::verbs::CompletionQueue received_;
  fabric::verbs::CompletionQueue sent_;
  std::vector<fabric::verbs::MemoryRegion> regions_;
  uint64_t posted_ = 0;
  bool is_armed_ = false;
};

// Waits for what the connection manager says next, which must be `expected`.
absl::StatusOr<rdma_cm_event*> NextEvent(rdma_event_channel* channel,
                                         rdma_cm_event_type expected) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) {
    return SystemError("rdma_get_cm_event");
  }
  if (event->event == expected) return event;
  const absl::Status status = absl::UnavailableError(
      absl::StrCat("verbs: ", rdma_event_str(event->event), " instead of ",
                   rdma_event_str(expected)));
  rdma_ack_cm_event(event);
  return status;
}

absl::Status Expect(rdma_event_channel* channel, rdma_cm_event_type expected) {
  ALPHEUS_ASSIGN_OR_RETURN(rdma_cm_event * event, NextEvent(channel, expected));
  rdma_ack_cm_event(event);
  return absl::OkStatus();
}

absl::StatusOr<CommunicationId> MakeId(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
    return SystemError("rdma_create_id");
  }
  return CommunicationId(id);
}

ibv_sge Name(const ibv_mr& region, std::span<const std::byte> bytes) {
  return {reinterpret_cast<uintptr_t>(bytes.data()),
          static_cast<uint32_t>(bytes.size()), region.lkey};
}

class VerbsFloorCandidate final : public Candidate {
 public:
  static absl::StatusOr<std::unique_ptr<Candidate>> Make(const Work& work) {
    ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                             FloorReplica::Make(work.folder, work.ring_bytes));
    ALPHEUS_ASSIGN_OR_RETURN(
        BackupProcess process,
        BackupProcess::Start(kVerbsFloorName, work.folder, work.ring_bytes));
    auto made = std::make_unique<VerbsFloorCandidate>(std::move(replica),
                                                      std::move(process));
    ALPHEUS_RETURN_IF_ERROR(made->Connect());
    return made;
  }

  VerbsFloorCandidate(FloorReplica replica, BackupProcess process)
      : replica_(std::move(replica)),
        process_(std::move(process)),
        answers_(kPairReceives * replication::kAckBytes) {}

  std::string name() const override { return kVerbsFloorName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    record_.assign(RecordBytes(payload_bytes), std::byte{0x5a});
    waiting_ = waiting;
    return absl::OkStatus();
  }
  absl::Status Append() override { return AppendOne(waiting_); }
  absl::Status End() override { return AppendOne(Waiting::kBlock); }

 private:
  absl::Status Connect() {
    events_.reset(rdma_create_event_channel());
    if (!events_) return SystemError("rdma_create_event_channel");
    ALPHEUS_ASSIGN_OR_RETURN(CommunicationId manager, MakeId(events_.get()));
    std::optional<fabric::SocketAddress> from =
        fabric::MakeSocketAddress(RdmaHosts()[0], 0);
    ALPHEUS_ASSIGN_OR_RETURN(fabric::SocketAddress to,
                             fabric::ParseSocketAddress(process_.address()));
    if (!from || rdma_resolve_addr(manager.get(), from->get(), to.get(),
                                   kResolveMs) != 0) {
      return SystemError("rdma_resolve_addr");
    }
    ALPHEUS_RETURN_IF_ERROR(Expect(events_.get(), RDMA_CM_EVENT_ADDR_RESOLVED));
    if (rdma_resolve_route(manager.get(), kResolveMs) != 0) {
      return SystemError("rdma_resolve_route");
    }
    ALPHEUS_RETURN_IF_ERROR(
        Expect(events_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED));
    ALPHEUS_ASSIGN_OR_RETURN(pair_, QueuePair::Make(std::move(manager)));
    ALPHEUS_ASSIGN_OR_RETURN(
        ring_, pair_->Register(replica_.bytes(), IBV_ACCESS_LOCAL_WRITE));
    ALPHEUS_ASSIGN_OR_RETURN(answers_region_,
                             pair_->Register(answers_, IBV_ACCESS_LOCAL_WRITE));
    for (uint64_t slot = 0; slot < kPairReceives; ++slot) {
      ALPHEUS_RETURN_IF_ERROR(PostReceive(slot));
    }
    rdma_conn_param parameters = {};
    parameters.retry_count = 6;
    parameters.rnr_retry_count = 6;
    if (rdma_connect(pair_->id(), &parameters) != 0) {
      return SystemError("rdma_connect");
    }
    ALPHEUS_ASSIGN_OR_RETURN(
        rdma_cm_event * event,
        NextEvent(events_.get(), RDMA_CM_EVENT_ESTABLISHED));
    std::memcpy(&place_, event->param.conn.private_data, sizeof(place_));
    rdma_ack_cm_event(event);
    return absl::OkStatus();
  }

  absl::Status PostReceive(uint64_t slot) {
    ibv_sge into = Name(*answers_region_, std::span(answers_).subspan(
                                              slot * replication::kAckBytes,
                                              replication::kAckBytes));
    return pair_->PostReceive(slot, &into);
  }

  absl::Status AppendOne(Waiting next) {
    const std::span<std::byte> place = replica_.Next(record_.size());
    replica_.Store(place, record_);
    const auto offset =
        static_cast<uint64_t>(place.data() - replica_.bytes().data());
    ibv_sge from = Name(*ring_, place);
    ibv_send_wr request = {};
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.sg_list = &from;
    request.num_sge = 1;
    request.imm_data = htobe32(static_cast<uint32_t>(offset / kLineBytes) |
                               static_cast<uint32_t>(next) << kPairNextShift);
    request.wr.rdma.remote_addr = place_.address + offset;
    request.wr.rdma.rkey = place_.rkey;
    ALPHEUS_RETURN_IF_ERROR(pair_->Post(request));
    replica_.Persist(place);
    ALPHEUS_ASSIGN_OR_RETURN(const ibv_wc answer, pair_->Next(waiting_));
    return PostReceive(answer.wr_id);
  }

  FloorReplica replica_;
  BackupProcess process_;
  std::vector<std::byte> answers_;
  fabric::verbs::EventChannel events_;
  std::unique_ptr<QueuePair> pair_;
  ibv_mr* ring_ = nullptr;
  ibv_mr* answers_region_ = nullptr;
  BackupPlace place_;
  std::vector<std::byte> record_;
  Waiting waiting_ = Waiting::kBlock;
};

// The backup's side of the queue pair, once the primary has connected.
absl::StatusOr<std::unique_ptr<QueuePair>> AcceptPrimary(
    rdma_event_channel* events, const std::string& host,
    CommunicationId* listener, FloorReplica& replica) {
  ALPHEUS_ASSIGN_OR_RETURN(*listener, MakeId(events));
  std::optional<fabric::SocketAddress> address =
      fabric::MakeSocketAddress(host, 0);
  if (!address || rdma_bind_addr(listener->get(), address->get()) != 0 ||
      rdma_listen(listener->get(), 1) != 0) {
    return SystemError("rdma_listen");
  }
  AnnounceAddress(fabric::FormatSocketAddress(
      fabric::SocketAddressOf(rdma_get_local_addr(listener->get()))));
  ALPHEUS_ASSIGN_OR_RETURN(rdma_cm_event * event,
                           NextEvent(events, RDMA_CM_EVENT_CONNECT_REQUEST));
  CommunicationId manager(event->id);
  rdma_ack_cm_event(event);
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<QueuePair> pair,
                           QueuePair::Make(std::move(manager)));
  ALPHEUS_ASSIGN_OR_RETURN(
      const ibv_mr* ring,
      pair->Register(replica.bytes(),
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  for (uint32_t i = 0; i < kPairReceives; ++i) {
    ALPHEUS_RETURN_IF_ERROR(pair->PostReceive(i, nullptr));
  }
  const BackupPlace place{reinterpret_cast<uintptr_t>(replica.bytes().data()),
                          ring->rkey};
  rdma_conn_param parameters = {};
  parameters.private_data = &place;
  parameters.private_data_len = sizeof(place);
  parameters.rnr_retry_count = 6;
  if (rdma_accept(pair->id(), &parameters) != 0) {
    return SystemError("rdma_accept");
  }
  ALPHEUS_RETURN_IF_ERROR(Expect(events, RDMA_CM_EVENT_ESTABLISHED));
  return pair;
}

}  // namespace

MakeCandidate VerbsFloor() { return VerbsFloorCandidate::Make; }

absl::Status ServeVerbsFloor(const std::string& folder, uint64_t ring_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                           FloorReplica::Make(folder, ring_bytes));
  const fabric::verbs::EventChannel events(rdma_create_event_channel());
  if (!events) return SystemError("rdma_create_event_channel");
  CommunicationId listener;
  std::array<std::byte, replication::kAckBytes> answer{};
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<QueuePair> pair,
      AcceptPrimary(events.get(), RdmaHosts()[1], &listener, replica));
  ALPHEUS_ASSIGN_OR_RETURN(const ibv_mr* region,
                           pair->Register(answer, IBV_ACCESS_LOCAL_WRITE));
  Waiting waiting = Waiting::kBlock;
  for (;;) {
    const absl::StatusOr<ibv_wc> record = pair->Next(waiting);
    if (absl::IsOutOfRange(record.status())) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(record.status());
    const uint32_t immediate = be32toh(record->imm_data);
    const uint64_t line = immediate & ((uint32_t{1} << kPairNextShift) - 1);
    ALPHEUS_RETURN_IF_ERROR(pair->PostReceive(record->wr_id, nullptr));
    replica.Persist(
        replica.bytes().subspan(line * kLineBytes, record->byte_len));
    waiting = static_cast<Waiting>(immediate >> kPairNextShift);
    ibv_sge from = Name(*region, answer);
    ibv_send_wr request = {};
    request.opcode = IBV_WR_SEND;
    request.sg_list = &from;
    request.num_sge = 1;
    ALPHEUS_RETURN_IF_ERROR(pair->Post(request));
  }
}

}  // namespace alpheus::bench::replicated
