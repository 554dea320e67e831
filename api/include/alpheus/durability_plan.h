// SPDX-License-Identifier: Apache-2.0
// durability_plan: how the records of an open log become durable: which
// replicas keep it, and what makes a record persistent on each.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_DURABILITY_PLAN_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_DURABILITY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace alpheus {

// Medium of a replica.
enum class DurabilityMedium {
  kUnknown,           // of another node: that one alone knows
  kPersistentMemory,  // mapped: the processor persists it
  kShadow,            // persistent memory, written from a copy in memory
  kFile,              // pages of a plain file
  kProcessMemory,     // memory of this process: gone with it
};

struct ReplicaDurability {
  uint64_t node = 0;    // 0: the log is local
  std::string address;  // of its node, "host:port"; empty: the log is local
  bool is_own = false;  // this process's own
  // It gets what is appended, and its acks count. Out of sync, the rest but
  // `medium` is empty: a plan is made when it joins.
  bool in_sync = false;
  DurabilityMedium medium = DurabilityMedium::kUnknown;
  // Platform of another node, for which this primary plans, in the words of
  // PlatformToString, "dmp,ddio,dram,tcp". A replica in a plain file has the
  // weakest, whatever its node was declared to be.
  std::string platform;
  // Steps that make a record persistent, in order. At another node: those of
  // requester and responder, as `alpheus plan` has them, "rq:write(a)". Own:
  // "copy" (from the shadow), "flush", "fence", "msync"; none: nothing persists
  // it.
  std::vector<std::string> steps;
  // Row of the tables that has the steps; empty for the own replica.
  std::string row;

  bool operator==(const ReplicaDurability&) const = default;
};

struct DurabilityPlan {
  uint32_t replicas = 1;      // N
  uint32_t write_quorum = 1;  // W
  // In the order of their nodes.
  std::vector<ReplicaDurability> members;

  bool operator==(const DurabilityPlan&) const = default;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_DURABILITY_PLAN_H_
