// SPDX-License-Identifier: Apache-2.0
// update_cost: the cost of an update by a plan, counted and not measured.
//
// Idea: steps say which operations are posted, and what is waited for between
// them. Everything that can be counted at an adapter comes from that. A test
// compares it with the executors, operation by operation.
//
// A doorbell is a series of posts that is handed to the adapter together, at
// the next Poll (docs/design/fabric.md). A row of the tables without an ack
// returns credits by messages of its own, one for half of the credits. Costs
// leave these out.
//
// Thread safety: pure functions.
// References: remote persistence taxonomy, Tables 2 and 3;
// docs/design/fabric.md.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLAN_UPDATE_COST_H_
#define ALPHEUS_REPLICATION_PERSIST_PLAN_UPDATE_COST_H_

#include <cstdint>
#include <span>
#include <string>

#include "replication/persist/platform/method.h"

namespace alpheus::replication {

struct UpdateSizes {
  uint64_t a = 0;
  uint64_t b = 0;  // 0: a singleton
  // Bytes sent with them: a line before the bytes of a send, an address, an
  // ack.
  uint64_t message_header = 0;
  uint64_t address = 0;
  uint64_t ack = 0;
};

struct UpdateCost {
  // Operations of the requester.
  uint64_t writes = 0;  // atomic ones included
  uint64_t immediates = 0;
  uint64_t sends = 0;
  uint64_t flushes = 0;
  uint64_t doorbells = 0;
  uint64_t bytes = 0;  // of payload
  // Operations of the responder.
  uint64_t acks = 0;  // each is a send and a doorbell
  uint64_t ack_bytes = 0;
  uint64_t wake_ups = 0;  // wake-ups of its program
  uint64_t round_trips = 0;

  bool operator==(const UpdateCost&) const = default;

  uint64_t operations() const { return writes + immediates + sends + flushes; }
};

UpdateCost UpdateCostOf(std::span<const Step> steps, const UpdateSizes& sizes);
// Return the sizes with what executors put into messages (update_message.h;
// ack.h for records).
UpdateSizes SizesOfUpdate(uint64_t a, uint64_t b);
UpdateSizes SizesOfRecord(uint64_t record_bytes);

// Returns "writes 1, ...".
std::string UpdateCostToString(const UpdateCost& cost);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLAN_UPDATE_COST_H_
