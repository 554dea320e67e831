// SPDX-License-Identifier: Apache-2.0
// cut: cuts the program of a primary off, without root and without its help.
//
// Idea: once a socket has a filter of the kernel that takes no byte, it drops
// all that comes to it. No program is told, as with a cut cable. A program that
// stands began all its connections itself: it connects to nodes, and listens
// nowhere. So a cut is in force when
//
//   the program   has such a filter on each of its sockets, and gives one to
//                 each socket that it connects later, before it connects
//   each node     has one on each socket whose other end is one of those
//
// A connection that the program begins later never comes about: no answer
// comes to it.
//
// Thread safety: as each function says.
#ifndef ALPHEUS_BENCH_FAILOVER_ALPHEUS_CUT_H_
#define ALPHEUS_BENCH_FAILOVER_ALPHEUS_CUT_H_

#include <functional>

#include "absl/status/status.h"
#include "bench/failover/alpheus/notes.h"

namespace alpheus::bench::failover {

// Blocks the signal that asks for a cut, in this thread and those that it
// starts, and starts a thread that calls `cut` once the signal comes. Requires:
// no other thread runs yet; called once; what `cut` uses lives as long as the
// process. Errors: Unavailable.
absl::Status OnCutSignal(std::function<void()> cut);
// Returns the signal.
int CutSignal();

// Cuts this process, a program, off for good. Notes the ports of its sockets,
// then when it was done. Any thread, while others go on.
void CutOff(Notes& notes);
// Cuts this process, a node, off from the ports that its notes name, and notes
// when it was done. Any thread, while others go on.
void DropCutPorts(Notes& notes);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_ALPHEUS_CUT_H_
