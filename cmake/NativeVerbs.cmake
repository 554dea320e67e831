# SPDX-License-Identifier: Apache-2.0
# Whether libibverbs has FLUSH and atomic WRITE (rdma-core 46; Debian 12 has 44):
# ALPHEUS_HAS_NATIVE_VERBS. replication/fabric/verbs/native_operations.h is what
# asks.
include(CheckCXXSourceCompiles)

# The calls are in the header: nothing need be linked.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::LIBIBVERBS)
check_cxx_source_compiles("
#include <infiniband/verbs.h>
void Post(ibv_qp_ex* pair, const void* word) {
  ibv_wr_flush(pair, 0, 0, 8, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
               IBV_FLUSH_RANGE);
  ibv_wr_atomic_write(pair, 0, 0, word);
}
constexpr int kNames[] = {IBV_WR_FLUSH, IBV_WR_ATOMIC_WRITE,
                          IBV_QP_EX_WITH_FLUSH, IBV_QP_EX_WITH_ATOMIC_WRITE,
                          IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT};
" ALPHEUS_HAS_NATIVE_VERBS)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
