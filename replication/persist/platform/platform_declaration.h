// SPDX-License-Identifier: Apache-2.0
// platform_declaration: compares an operator's declaration of a platform with
// what the machine shows.
//
// Idea: a platform can't be proven, so it is declared (platform.h), and a false
// claim loses acknowledged records. Some claims leave a trace: libpmem finds
// eADR, the adapter shows its transport and abilities. Each claim beyond what
// is seen gives one warning when the node starts. The claim is obeyed all the
// same, as the lack of a trace proves nothing.
//
// Thread safety: pure functions.
// References: remote persistence taxonomy §3.1; protocol P-B6 P-R7.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_DECLARATION_H_
#define ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_DECLARATION_H_

#include <string>
#include <vector>

#include "replication/persist/platform/platform.h"

namespace alpheus::replication {

// The properties that a program can see of its machine; by default the least.
struct Shown {
  bool caches_persist = false;            // libpmem's pmem_has_auto_flush: eADR
  Transport transport = Transport::kTcp;  // of the fabric in use
  bool native_flush = false;              // of the fabric's Limits
  bool atomic_write = false;
  // Receive buffers are posted in persistent memory.
  bool receives_into_pmem = false;
};

// Returns a sentence for each claim beyond what is shown. It names the claim,
// what is seen, the danger, and what to declare.
std::vector<std::string> PlatformWarnings(const Platform& platform,
                                          const Shown& shown);

// The medium that peers' writes to a replica reach.
enum class ReplicaMedium {
  kPmem,    // mapped persistent memory
  kShadow,  // a copy in memory, from which a program writes it
  kFile,    // pages of a plain file
};

// Returns the warning for one replica, or an empty string.
std::string ReplicaWarning(const Platform& platform, ReplicaMedium medium);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_PLATFORM_DECLARATION_H_
