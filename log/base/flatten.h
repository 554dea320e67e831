// SPDX-License-Identifier: Apache-2.0
// flatten: functions into which all is put that they call.
//
// Idea: an append goes through some forty small functions of a dozen classes,
// each in the room where a reader looks for it; with an adapter with RDMA the
// calls between them show (docs/design/performance.md). So a few functions that
// each append comes by are marked, and the compiler puts into them what they
// call: with link-time optimization (Release) across sources, else within one.
// Not LogReplication::TakeSome, and not who calls it: GCC guesses who is behind
// its interfaces, and puts half of recovery into them.
//
// Only where it optimizes: elsewhere it would just take longer to compile.
#ifndef ALPHEUS_LOG_BASE_FLATTEN_H_
#define ALPHEUS_LOG_BASE_FLATTEN_H_

// In front of a function's definition.
#if defined(__OPTIMIZE__) && defined(NDEBUG)
#define ALPHEUS_FLATTEN [[gnu::flatten]]
#else
#define ALPHEUS_FLATTEN
#endif

#endif  // ALPHEUS_LOG_BASE_FLATTEN_H_
