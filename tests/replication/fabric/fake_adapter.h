// SPDX-License-Identifier: Apache-2.0
// fake_adapter: what the verbs fabric asks of an adapter, on machines without.
//
// Idea: a program that is linked with fake_adapter.cc has the few functions of
// libibverbs and librdmacm that queue pairs, regions and connections call, and
// those count and keep what they were asked. Nothing moves; completions are
// what a test says.
//
// Thread safety: one thread; one at a time.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_FAKE_ADAPTER_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_FAKE_ADAPTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "replication/fabric/verbs/handles.h"

namespace alpheus::testing {

class FakeAdapter {
 public:
  FakeAdapter();
  ~FakeAdapter();
  FakeAdapter(const FakeAdapter&) = delete;
  FakeAdapter& operator=(const FakeAdapter&) = delete;

  // What a completion queue will say next.
  void Complete(uint64_t work, ibv_wc_status status = IBV_WC_SUCCESS);

  ibv_context context = {};
  ibv_pd domain = {};
  rdma_cm_id manager = {};

  std::vector<std::vector<ibv_send_wr>> doorbells;  // each with its chain
  std::vector<ibv_recv_wr> receives;
  std::deque<ibv_wc> completions;
  int queue_entries = 0;  // asked for, of the last completion queue
  int queue_pairs = 0;    // made and not destroyed
  int regions = 0;        // registered and not deregistered
  unsigned access = 0;    // of the last region
  rdma_conn_param called = {};
  std::deque<ibv_async_event> news;
  // What ending something returns.
  int end_error = 0;
  // Of all regions, also of those that an adapter took with it.
  std::vector<std::unique_ptr<ibv_mr>> handles;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_FAKE_ADAPTER_H_
