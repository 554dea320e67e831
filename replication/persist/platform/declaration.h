// SPDX-License-Identifier: Apache-2.0
// declaration: where an operator's word on a platform says more than the
// machine shows.
//
// Idea: a platform can't be proven, so it is declared (platform.h), and a claim
// that is not true loses acknowledged records. Some claims leave a trace: eADR
// in what libpmem finds, transport and abilities in the adapter. Each claim
// beyond what is seen is one warning, said when the node starts; it is obeyed
// all the same, as seeing nothing proves nothing.
//
// Thread safety: pure functions.
// References: remote persistence taxonomy §3.1; protocol P-B6 P-R7.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLATFORM_DECLARATION_H_
#define ALPHEUS_REPLICATION_PERSIST_PLATFORM_DECLARATION_H_

#include <string>
#include <vector>

#include "replication/persist/platform/platform.h"

namespace alpheus {

// What a program can see of its machine; the least of each.
struct Shown {
  bool caches_persist = false;            // libpmem's pmem_has_auto_flush: eADR
  Transport transport = Transport::kTcp;  // of the fabric that is used
  bool native_flush = false;              // its Limits
  bool atomic_write = false;
  // Receive buffers are posted in persistent memory.
  bool receives_into_pmem = false;
};

// A sentence for each claim beyond it, which names claim, sight, what may come
// of it and what to declare.
std::vector<std::string> DeclarationWarnings(const Platform& platform,
                                             const Shown& shown);

// What peers' writes to a replica go to.
enum class ReplicaMedium {
  kPmem,     // mapped persistent memory
  kLanding,  // a copy of it in memory, from which it is written
  kFile,     // pages of a plain file
};

// The same of one replica. Empty: none.
std::string ReplicaWarning(const Platform& platform, ReplicaMedium medium);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_DECLARATION_H_
