// SPDX-License-Identifier: Apache-2.0
// native_operations: FLUSH and atomic WRITE of the library and the adapter,
// where both have them. No other file knows whether they do.
//
// Idea: rdma-core has both operations from release 46 on, in its extended way
// of posting (ibv_wr_*) only. A build with older headers (Debian 12 has 44) has
// neither: then no adapter is able, and all the rest is as it was. A chain with
// one of the two is posted whole by the extended way, so that it still takes
// one doorbell. All others go by ibv_post_send, which costs no more than
// before.
//
// Invariants:
//   NO1. An adapter's ability is tried before it counts: a queue pair with it
//        was made once. The library supports some adapters less than the kernel
//        does.
//   NO2. FLUSH is requested with both placements, globally visible and
//        persistent: by the standard neither includes the other.
// Thread safety: values and functions of their arguments.
// References: ibv_wr_post(3), ibv_reg_mr(3), ibv_query_device_ex(3); InfiniBand
// Architecture 1.2.1, Annex A19.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_OPERATIONS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_OPERATIONS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

namespace alpheus::fabric::verbs {

struct NativeAbilities {
  bool flush = false;
  bool atomic_write = false;

  bool any() const { return flush || atomic_write; }
  bool operator==(const NativeAbilities&) const = default;
};

// Opcodes in a chain, beside the library's own. The numbers are its
// IBV_WR_FLUSH and IBV_WR_ATOMIC_WRITE, which old headers lack.
inline constexpr auto kFlushOpcode = static_cast<ibv_wr_opcode>(14);
inline constexpr auto kAtomicWriteOpcode = static_cast<ibv_wr_opcode>(15);

// Access of a region that takes a FLUSH: IBV_ACCESS_FLUSH_GLOBAL and
// IBV_ACCESS_FLUSH_PERSISTENT. Adapters refuse it for memory that they do not
// take for persistent.
inline constexpr unsigned kFlushAccess = 1U << 8 | 1U << 9;

// Returns the adapter's abilities. `capabilities` are its device_cap_flags_ex.
NativeAbilities NativeAbilitiesOf(ibv_context* context, uint64_t capabilities);

// Makes a queue pair, as rdma_create_qp, with these abilities. `attributes`
// then hold the actual values.
int MakePair(rdma_cm_id* id, ibv_pd* domain, NativeAbilities abilities,
             ibv_qp_init_attr* attributes);

// Posts a chain, as ibv_post_send, all or nothing. The `sg_list` of a FLUSH
// gives the length only, that of an atomic WRITE the word's place in this
// process. Requires: MakePair was given the abilities that are in the chain.
int PostNative(ibv_qp* pair, ibv_send_wr* first);

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_NATIVE_OPERATIONS_H_
