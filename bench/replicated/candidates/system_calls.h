// SPDX-License-Identifier: Apache-2.0
// system_calls: how often this process has asked the kernel to send, to
// receive, to wait or to give way.
//
// Idea: the linker hands these calls of the program and of the libraries linked
// into it to counting ones (--wrap), so that all candidates are counted alike
// and none has to be asked.
//
// Thread safety: all concurrently.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_SYSTEM_CALLS_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_SYSTEM_CALLS_H_

#include <cstdint>

namespace alpheus::bench::replicated {

struct SystemCalls {
  uint64_t sends = 0;     // send, sendmsg
  uint64_t receives = 0;  // recv, also those that found nothing
  uint64_t waits = 0;     // poll, epoll_wait
  uint64_t yields = 0;    // sched_yield
};

// Since the start.
SystemCalls CountSystemCalls();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_SYSTEM_CALLS_H_
