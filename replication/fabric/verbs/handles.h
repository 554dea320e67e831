// SPDX-License-Identifier: Apache-2.0
// handles: the objects of the verbs libraries, each with its destructor.
//
// A destructor's failure leaves nothing to do: the kernel takes everything back
// when the process ends.
//
// Thread safety: values that are moved.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_HANDLES_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_HANDLES_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace alpheus::fabric::verbs {

template <auto End>
struct Ender {
  template <class T>
  void operator()(T* handle) const {
    (void)End(handle);
  }
};

using ProtectionDomain = std::unique_ptr<ibv_pd, Ender<ibv_dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Ender<ibv_dereg_mr>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Ender<ibv_destroy_cq>>;
using CompletionChannel =
    std::unique_ptr<ibv_comp_channel, Ender<ibv_destroy_comp_channel>>;
using EventChannel =
    std::unique_ptr<rdma_event_channel, Ender<rdma_destroy_event_channel>>;
using CommunicationId = std::unique_ptr<rdma_cm_id, Ender<rdma_destroy_id>>;

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_HANDLES_H_
