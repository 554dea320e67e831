// SPDX-License-Identifier: Apache-2.0
// rdma_hosts: addresses of this machine with RDMA adapters.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_RDMA_HOSTS_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_RDMA_HOSTS_H_

#include <string>
#include <vector>

namespace alpheus::bench::replicated {

// Returns them from the environment, ALPHEUS_VERBS_ADDRESSES: addresses
// separated by commas. The first one is the primary's, the others are the
// backups'.
std::vector<std::string> RdmaHosts();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_RDMA_HOSTS_H_
