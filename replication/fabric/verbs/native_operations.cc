// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/native_operations.h"

#ifdef ALPHEUS_NATIVE_VERBS
#include <memory>

#include "replication/fabric/verbs/handles.h"
#endif

namespace alpheus::fabric::verbs {

#ifdef ALPHEUS_NATIVE_VERBS

static_assert(kFlushOpcode == IBV_WR_FLUSH);
static_assert(kAtomicWriteOpcode == IBV_WR_ATOMIC_WRITE);
static_assert(kFlushAccess ==
              (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT));

namespace {

// IB_UVERBS_DEVICE_FLUSH_GLOBAL, _FLUSH_PERSISTENT and _ATOMIC_WRITE of the
// kernel's headers, which may be older than the library's.
constexpr uint64_t kCanFlush = uint64_t{1} << 38 | uint64_t{1} << 39;
constexpr uint64_t kCanWriteAtomically = uint64_t{1} << 40;

constexpr uint8_t kPlacements = static_cast<uint8_t>(IBV_FLUSH_GLOBAL) |
                                static_cast<uint8_t>(IBV_FLUSH_PERSISTENT);

// Returns all operations of a chain, as it is posted whole.
uint64_t OperationsOf(NativeAbilities abilities) {
  uint64_t operations =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  if (abilities.flush) operations |= IBV_QP_EX_WITH_FLUSH;
  if (abilities.atomic_write) operations |= IBV_QP_EX_WITH_ATOMIC_WRITE;
  return operations;
}

ibv_qp_init_attr_ex AttributesFor(ibv_pd* domain, NativeAbilities abilities) {
  ibv_qp_init_attr_ex attributes = {};
  attributes.qp_type = IBV_QPT_RC;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = domain;
  attributes.send_ops_flags = OperationsOf(abilities);
  return attributes;
}

bool CanBeMade(ibv_pd* domain, ibv_cq* queue, NativeAbilities abilities) {
  ibv_qp_init_attr_ex attributes = AttributesFor(domain, abilities);
  attributes.send_cq = queue;
  attributes.recv_cq = queue;
  attributes.cap.max_send_wr = 1;
  attributes.cap.max_recv_wr = 1;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  const std::unique_ptr<ibv_qp, Ender<ibv_destroy_qp>> pair(
      ibv_create_qp_ex(domain->context, &attributes));
  return pair != nullptr;
}

void SetBytes(ibv_qp_ex* pair, const ibv_send_wr& request) {
  const ibv_sge bytes = request.num_sge == 0 ? ibv_sge{} : request.sg_list[0];
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    ibv_wr_set_inline_data(pair, reinterpret_cast<void*>(bytes.addr),
                           bytes.length);
  } else {
    ibv_wr_set_sge(pair, bytes.lkey, bytes.addr, bytes.length);
  }
}

void Build(ibv_qp_ex* pair, const ibv_send_wr& request) {
  const auto& rdma = request.wr.rdma;
  const auto& atomic = request.wr.atomic;
  pair->wr_id = request.wr_id;
  // Soft-RoCE looks for IBV_SEND_INLINE, too, which other adapters ignore.
  pair->wr_flags = request.send_flags;
  switch (request.opcode) {
    case kFlushOpcode:
      ibv_wr_flush(pair, rdma.rkey, rdma.remote_addr, request.sg_list[0].length,
                   kPlacements, IBV_FLUSH_RANGE);
      return;
    case kAtomicWriteOpcode:
      ibv_wr_atomic_write(
          pair, rdma.rkey, rdma.remote_addr,
          reinterpret_cast<const void*>(request.sg_list[0].addr));
      return;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(pair, rdma.rkey, rdma.remote_addr);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(pair, rdma.rkey, rdma.remote_addr,
                            request.imm_data);
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(pair, rdma.rkey, rdma.remote_addr);
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      ibv_wr_atomic_cmp_swp(pair, atomic.rkey, atomic.remote_addr,
                            atomic.compare_add, atomic.swap);
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      ibv_wr_atomic_fetch_add(pair, atomic.rkey, atomic.remote_addr,
                              atomic.compare_add);
      break;
    default:
      ibv_wr_send(pair);
      break;
  }
  SetBytes(pair, request);
}

}  // namespace

NativeAbilities NativeAbilitiesOf(ibv_context* context, uint64_t capabilities) {
  const ProtectionDomain domain(ibv_alloc_pd(context));
  const CompletionQueue queue(ibv_create_cq(context, 2, nullptr, nullptr, 0));
  if (!domain || !queue) return {};
  const bool says_flush = (capabilities & kCanFlush) == kCanFlush;
  const bool says_write = (capabilities & kCanWriteAtomically) != 0;
  return {says_flush && CanBeMade(domain.get(), queue.get(), {.flush = true}),
          says_write &&
              CanBeMade(domain.get(), queue.get(), {.atomic_write = true})};
}

int MakePair(rdma_cm_id* id, ibv_pd* domain, NativeAbilities abilities,
             ibv_qp_init_attr* attributes) {
  if (!abilities.any()) return rdma_create_qp(id, domain, attributes);
  ibv_qp_init_attr_ex extended = AttributesFor(domain, abilities);
  extended.send_cq = attributes->send_cq;
  extended.recv_cq = attributes->recv_cq;
  extended.cap = attributes->cap;
  const int result = rdma_create_qp_ex(id, &extended);
  attributes->cap = extended.cap;
  return result;
}

int PostNative(ibv_qp* pair, ibv_send_wr* first) {
  ibv_qp_ex* const extended = ibv_qp_to_qp_ex(pair);
  ibv_wr_start(extended);
  for (const ibv_send_wr* request = first; request != nullptr;
       request = request->next) {
    Build(extended, *request);
  }
  return ibv_wr_complete(extended);
}

#else

NativeAbilities NativeAbilitiesOf(ibv_context* /*context*/,
                                  uint64_t /*capabilities*/) {
  return {};
}

int MakePair(rdma_cm_id* id, ibv_pd* domain, NativeAbilities /*abilities*/,
             ibv_qp_init_attr* attributes) {
  return rdma_create_qp(id, domain, attributes);
}

// No adapter is able, so none is asked; a fake one takes any number.
int PostNative(ibv_qp* pair, ibv_send_wr* first) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair, first, &bad);
}

#endif

}  // namespace alpheus::fabric::verbs
