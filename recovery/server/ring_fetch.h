// SPDX-License-Identifier: Apache-2.0
// ring_fetch: the bytes of its ring that a replica shows in reply to Fetch.
//
// Idea: a process that repairs its own replica asks others for bytes by their
// place, and checks what it gets (RR1 of record_repair.h). The node or primary
// that has the region shows bytes that it can read without disturbing a writer.
//
// Invariants:
//   RFT1. Nothing before `begin` and nothing from `end` on is shown: bytes
//         there may be reused, or may be being written.
// Thread safety: pure function; nobody writes [begin, end) meanwhile.
// References: docs/design/reading_and_scrubbing.md#scrubbing,
// docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_SERVER_RING_FETCH_H_
#define ALPHEUS_RECOVERY_SERVER_RING_FETCH_H_

#include "log/base/ids.h"
#include "log/format/layout.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

// Returns the part of `fetch` in [begin, end) of the ring, from its first byte
// on; nothing if that byte lies elsewhere. Requires: at most a lap.
Fetched FetchedFrom(const Ring& ring, RingOffset begin, RingOffset end,
                    const Fetch& fetch);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_RING_FETCH_H_
