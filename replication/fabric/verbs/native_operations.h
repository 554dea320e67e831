// SPDX-License-Identifier: Apache-2.0
// native_operations: FLUSH and atomic WRITE of the library and the adapter,
// where both have them. The one place that knows whether they do.
//
// Idea: rdma-core has both operations from release 46 on, in its extended way
// of posting (ibv_wr_*) and in no other. A build with older headers (Debian 12
// has 44) has nothing of it: no adapter is able then, and all else here is what
// the library always had. A chain with one of the two is posted whole by
// the extended way, so that it still takes one doorbell; all others go by
// ibv_post_send, which costs no more than without.
//
// Invariants:
//   NO1. What an adapter says it can is tried before it counts: a queue pair
//        for it was made once. The library knows some adapters less well than
//        the kernel.
//   NO2. FLUSH is asked for with both placements, globally visible and
//        persistent: by the standard neither comprises the other.
// Thread safety: values and functions of their arguments.
// References: ibv_wr_post(3), ibv_reg_mr(3), ibv_query_device_ex(3); InfiniBand
// Architecture 1.2.1, Annex A19.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_OPERATIONS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_OPERATIONS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

namespace alpheus::verbs {

struct NativeAbilities {
  bool flush = false;
  bool atomic_write = false;

  bool any() const { return flush || atomic_write; }
  bool operator==(const NativeAbilities&) const = default;
};

// In a chain, beside the library's own. The numbers are its IBV_WR_FLUSH and
// IBV_WR_ATOMIC_WRITE, which old headers lack.
inline constexpr auto kFlushOpcode = static_cast<ibv_wr_opcode>(14);
inline constexpr auto kAtomicWriteOpcode = static_cast<ibv_wr_opcode>(15);

// What a region is registered with to take a FLUSH: IBV_ACCESS_FLUSH_GLOBAL
// and IBV_ACCESS_FLUSH_PERSISTENT. Adapters refuse it for memory that is not
// persistent, as they see it.
inline constexpr unsigned kFlushAccess = 1U << 8 | 1U << 9;

// `capabilities` are the adapter's device_cap_flags_ex.
NativeAbilities NativeAbilitiesOf(ibv_context* context, uint64_t capabilities);

// As rdma_create_qp, for these too; `attributes` hold what became of them.
int MakePair(rdma_cm_id* id, ibv_pd* domain, NativeAbilities abilities,
             ibv_qp_init_attr* attributes);

// As ibv_post_send, all or nothing; of a FLUSH `sg_list` tells the length only,
// of an atomic WRITE the word's place in this process. Requires: MakePair was
// given what is in the chain.
int PostNative(ibv_qp* pair, ibv_send_wr* first);

}  // namespace alpheus::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_OPERATIONS_H_
