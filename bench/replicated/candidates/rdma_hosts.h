// SPDX-License-Identifier: Apache-2.0
// rdma_hosts: addresses of this machine that have adapters with RDMA.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_RDMA_HOSTS_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_RDMA_HOSTS_H_

#include <string>
#include <vector>

namespace alpheus::bench::replicated {

// From the environment, ALPHEUS_VERBS_ADDRESSES: numbers with commas between
// them. The first one is the primary's, each other one a backup's.
std::vector<std::string> RdmaHosts();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_RDMA_HOSTS_H_
