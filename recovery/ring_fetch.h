// SPDX-License-Identifier: Apache-2.0
// ring_fetch: what a replica shows of its ring to who asks by Fetch.
//
// Idea: whoever repairs a replica of its own asks others for bytes by their
// place, and checks what it gets (record_repair.h, RR1). The one who has the
// region, be it a node or a primary, shows what it may read without disturbing
// who writes there.
//
// Invariants:
//   RFT1. Nothing before `begin` and nothing from `end` on is shown: where
//         bytes may be used again, or are being written, nobody else reads.
// Thread safety: pure function; nobody writes [begin, end) meanwhile.
// References: docs/design/reading_and_scrubbing.md#scrubbing,
// docs/formats/recovery_wire.md.
#ifndef ALPHEUS_RECOVERY_RING_FETCH_H_
#define ALPHEUS_RECOVERY_RING_FETCH_H_

#include "log/base/ids.h"
#include "log/format/layout.h"
#include "recovery/messages.h"

namespace alpheus {

// What of `fetch` lies in [begin, end) of the ring, from its first byte on;
// nothing if that lies elsewhere. Requires: at most a lap.
Fetched FetchedFrom(const Ring& ring, RingOffset begin, RingOffset end,
                    const Fetch& fetch);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RING_FETCH_H_
