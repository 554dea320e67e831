// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/fabric/fake_adapter.h"

#include <algorithm>

namespace alpheus::testing {
namespace {

FakeAdapter* the_adapter = nullptr;
ibv_qp the_queue_pair = {};

int PostSend(ibv_qp* /*pair*/, ibv_send_wr* first, ibv_send_wr** /*bad*/) {
  std::vector<ibv_send_wr> chain;
  for (; first != nullptr; first = first->next) chain.push_back(*first);
  the_adapter->doorbells.push_back(chain);
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

}  // namespace

FakeAdapter::FakeAdapter() {
  the_adapter = this;
  context.ops.post_send = PostSend;
  context.ops.post_recv = PostReceive;
  context.ops.poll_cq = PollQueue;
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

using alpheus::testing::the_adapter;
using alpheus::testing::the_queue_pair;

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

int rdma_create_qp(rdma_cm_id* id, ibv_pd* /*domain*/,
                   ibv_qp_init_attr* /*attributes*/) {
  the_queue_pair = {};
  the_queue_pair.context = id->verbs;
  id->qp = &the_queue_pair;
  ++the_adapter->queue_pairs;
  return 0;
}

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
