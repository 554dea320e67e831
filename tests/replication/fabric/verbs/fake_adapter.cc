// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/fabric/verbs/fake_adapter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace alpheus::testing {
namespace {

FakeAdapter* the_adapter = nullptr;
ibv_qp_ex the_extended = {};
ibv_qp& the_queue_pair = the_extended.qp_base;

int PostSend(ibv_qp* /*pair*/, ibv_send_wr* first, ibv_send_wr** /*bad*/) {
  if (the_adapter->post_error != 0) return the_adapter->post_error;
  the_adapter->doorbells.emplace_back();
  the_adapter->own.emplace_back();
  for (; first != nullptr; first = first->next) {
    the_adapter->doorbells.back().push_back(*first);
    the_adapter->own.back().push_back(first->num_sge == 0 ? ibv_sge{}
                                                          : *first->sg_list);
  }
  return 0;
}

int PostReceive(ibv_qp* /*pair*/, ibv_recv_wr* request, ibv_recv_wr** /*bad*/) {
  the_adapter->receives.push_back(*request);
  return 0;
}

int PollQueue(ibv_cq* /*queue*/, int most, ibv_wc* into) {
  std::deque<ibv_wc>& all = the_adapter->completions;
  const auto count = std::min(static_cast<size_t>(most), all.size());
  const auto end = all.begin() + static_cast<ptrdiff_t>(count);
  std::copy(all.begin(), end, into);
  all.erase(all.begin(), end);
  return static_cast<int>(count);
}

#ifdef ALPHEUS_NATIVE_VERBS

// The extended way: what is built, then posted as the other way does.
std::vector<ibv_send_wr> the_chain;
std::vector<ibv_sge> the_bytes;

ibv_send_wr& Built(ibv_qp_ex* pair, ibv_wr_opcode opcode, uint32_t rkey = 0,
                   uint64_t address = 0) {
  ibv_send_wr request = {};
  request.wr_id = pair->wr_id;
  request.send_flags = pair->wr_flags;
  request.opcode = opcode;
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = rkey;
  the_chain.push_back(request);
  the_bytes.emplace_back();
  return the_chain.back();
}

ibv_send_wr& BuiltAtomic(ibv_qp_ex* pair, ibv_wr_opcode opcode, uint32_t rkey,
                         uint64_t address) {
  ibv_send_wr& request = Built(pair, opcode);
  request.wr.atomic.remote_addr = address;
  request.wr.atomic.rkey = rkey;
  return request;
}

uint64_t AddressOf(const void* bytes) {
  return reinterpret_cast<uintptr_t>(bytes);
}

void SetWays(ibv_qp_ex* pair) {
  pair->wr_start = [](ibv_qp_ex*) {
    the_chain.clear();
    the_bytes.clear();
  };
  pair->wr_complete = [](ibv_qp_ex*) {
    if (the_adapter->post_error != 0) return the_adapter->post_error;
    ++the_adapter->extended_doorbells;
    the_adapter->doorbells.push_back(the_chain);
    the_adapter->own.push_back(the_bytes);
    return 0;
  };
  pair->wr_flush = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address,
                      size_t length, uint8_t type, uint8_t level) {
    EXPECT_EQ(type, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) << "NO2";
    EXPECT_EQ(level, IBV_FLUSH_RANGE);
    Built(own, IBV_WR_FLUSH, rkey, address);
    the_bytes.back().length = static_cast<uint32_t>(length);
  };
  pair->wr_atomic_write = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address,
                             const void* word) {
    Built(own, IBV_WR_ATOMIC_WRITE, rkey, address);
    the_bytes.back() = {AddressOf(word), sizeof(uint64_t), 0};
  };
  pair->wr_rdma_write = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address) {
    Built(own, IBV_WR_RDMA_WRITE, rkey, address);
  };
  pair->wr_rdma_write_imm = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address,
                               __be32 immediate) {
    Built(own, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address).imm_data = immediate;
  };
  pair->wr_rdma_read = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address) {
    Built(own, IBV_WR_RDMA_READ, rkey, address);
  };
  pair->wr_send = [](ibv_qp_ex* own) { Built(own, IBV_WR_SEND); };
  pair->wr_atomic_cmp_swp = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address,
                               uint64_t compare, uint64_t swap) {
    ibv_send_wr& request =
        BuiltAtomic(own, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
    request.wr.atomic.compare_add = compare;
    request.wr.atomic.swap = swap;
  };
  pair->wr_atomic_fetch_add = [](ibv_qp_ex* own, uint32_t rkey,
                                 uint64_t address, uint64_t add) {
    BuiltAtomic(own, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address)
        .wr.atomic.compare_add = add;
  };
  pair->wr_set_inline_data = [](ibv_qp_ex*, void* bytes, size_t length) {
    the_bytes.back() = {AddressOf(bytes), static_cast<uint32_t>(length), 0};
  };
  pair->wr_set_sge = [](ibv_qp_ex*, uint32_t lkey, uint64_t address,
                        uint32_t length) {
    the_bytes.back() = {address, length, lkey};
  };
}

#else

void SetWays(ibv_qp_ex* /*pair*/) {}

#endif

ibv_qp* MakePair(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  if ((attributes->send_ops_flags & the_adapter->operations_refused) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  the_extended = {};
  SetWays(&the_extended);
  the_queue_pair.context = context;
  the_adapter->operations = attributes->send_ops_flags;
  ++the_adapter->queue_pairs;
  return &the_queue_pair;
}

}  // namespace

FakeAdapter::FakeAdapter() {
  the_adapter = this;
  extended.sz = sizeof(extended);
  extended.create_qp_ex = MakePair;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.ops.post_send = PostSend;
  context.ops.post_recv = PostReceive;
  context.ops.poll_cq = PollQueue;
  context.ops.req_notify_cq = [](ibv_cq*, int) {
    ++the_adapter->arms;
    return 0;
  };
  domain.context = &context;
  manager.verbs = &context;
}

FakeAdapter::~FakeAdapter() { the_adapter = nullptr; }

void FakeAdapter::Complete(uint64_t work, ibv_wc_status status) {
  ibv_wc completion = {};
  completion.wr_id = work;
  completion.status = status;
  completions.push_back(completion);
}

}  // namespace alpheus::testing

using alpheus::testing::MakePair;
using alpheus::testing::the_adapter;
using alpheus::testing::the_extended;

// In place of the libraries' own, whose names parameters keep.
extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* /*user*/,
                      ibv_comp_channel* /*channel*/, int /*vector*/) {
  static ibv_cq queue;
  queue = {};
  queue.context = context;
  the_adapter->queue_entries = cqe;
  return &queue;
}

int ibv_destroy_cq(ibv_cq* /*queue*/) { return 0; }

void ibv_ack_cq_events(ibv_cq* /*queue*/, unsigned /*count*/) {}

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* qp_init_attr) {
  id->qp = MakePair(id->verbs, qp_init_attr);
  return id->qp == nullptr ? -1 : 0;
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* /*domain*/,
                   ibv_qp_init_attr* /*attributes*/) {
  ibv_qp_init_attr_ex none = {};
  return rdma_create_qp_ex(id, &none);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* /*pair*/) { return &the_extended; }

ibv_pd* ibv_alloc_pd(ibv_context* /*context*/) { return &the_adapter->domain; }

int ibv_dealloc_pd(ibv_pd* /*domain*/) { return 0; }

int ibv_modify_qp(ibv_qp* /*pair*/, ibv_qp_attr* /*attributes*/, int /*mask*/) {
  return 0;
}

int ibv_destroy_qp(ibv_qp* /*pair*/) {
  --the_adapter->queue_pairs;
  return the_adapter->end_error;
}

#undef ibv_reg_mr_iova
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* /*addr*/, size_t /*length*/,
                         uint64_t /*iova*/, unsigned access) {
  static uint32_t last_key = 0;
  if ((access & the_adapter->access_refused) != 0) {
    errno = EINVAL;
    return nullptr;
  }
  the_adapter->access = access;
  ++the_adapter->regions;
  the_adapter->handles.push_back(std::make_unique<ibv_mr>());
  ibv_mr* const region = the_adapter->handles.back().get();
  region->pd = pd;
  region->lkey = region->rkey = ++last_key;
  return region;
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                        int access) {
  return ibv_reg_mr_iova2(pd, addr, length, iova,
                          static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* /*mr*/) {
  if (the_adapter == nullptr) return 0;
  if (the_adapter->end_error == 0) --the_adapter->regions;
  return the_adapter->end_error;
}

int ibv_get_async_event(ibv_context* /*context*/, ibv_async_event* event) {
  if (the_adapter == nullptr || the_adapter->news.empty()) return -1;
  *event = the_adapter->news.front();
  the_adapter->news.pop_front();
  return 0;
}

void ibv_ack_async_event(ibv_async_event* /*event*/) {}

int rdma_connect(rdma_cm_id* /*id*/, rdma_conn_param* conn_param) {
  the_adapter->called = *conn_param;
  return 0;
}

int rdma_disconnect(rdma_cm_id* /*id*/) { return 0; }

// Ids are members of their adapter.
int rdma_destroy_id(rdma_cm_id* /*id*/) { return 0; }

}  // extern "C"
