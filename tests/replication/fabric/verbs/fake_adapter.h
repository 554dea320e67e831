// SPDX-License-Identifier: Apache-2.0
// fake_adapter: what the verbs fabric asks of an adapter, on machines without.
//
// Idea: a program that is linked with fake_adapter.cc has the few functions of
// libibverbs and librdmacm that queue pairs, regions and connections call, and
// those count and keep what they were asked. Nothing moves; completions are
// what a test says. FLUSH and atomic WRITE are kept like other requests, with
// the library's numbers, whether the library has them or not.
//
// Thread safety: one thread; one at a time.
#ifndef ALPHEUS_TESTS_REPLICATION_FABRIC_VERBS_FAKE_ADAPTER_H_
#define ALPHEUS_TESTS_REPLICATION_FABRIC_VERBS_FAKE_ADAPTER_H_

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

  // A completion queue will say this next.
  void Complete(uint64_t work, ibv_wc_status status = IBV_WC_SUCCESS);

  verbs_context extended = {};
  ibv_context& context = extended.context;
  ibv_pd domain = {};
  rdma_cm_id manager = {};

  std::vector<std::vector<ibv_send_wr>> doorbells;  // each with its chain
  std::vector<std::vector<ibv_sge>> own;            // bytes of each of these
  int extended_doorbells = 0;  // of these, by the extended way
  std::vector<ibv_recv_wr> receives;
  std::deque<ibv_wc> completions;
  int queue_entries = 0;  // asked for, of the last completion queue
  int arms = 0;           // times that the next completion was to be told of
  int queue_pairs = 0;    // made and not destroyed
  int regions = 0;        // registered and not deregistered
  unsigned access = 0;    // of the last region
  // With one of these no region is registered.
  unsigned access_refused = 0;
  uint64_t operations = 0;  // the last queue pair's, if it was asked for some
  uint64_t operations_refused = 0;  // with one of these no queue pair is made
  rdma_conn_param called = {};
  std::deque<ibv_async_event> news;
  // The results of ending anything, and of posting.
  int end_error = 0;
  int post_error = 0;
  // The handles of all regions, also of those that an adapter took with it.
  std::vector<std::unique_ptr<ibv_mr>> handles;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_FABRIC_VERBS_FAKE_ADAPTER_H_
