// SPDX-License-Identifier: Apache-2.0
// flatten: marks functions into which the compiler inlines all their callees.
//
// Idea: an append goes through some forty small functions of a dozen classes,
// each where a reader looks for it. With an RDMA adapter the calls between them
// show (docs/design/architecture.md#the-cost-of-a-record). So a few functions
// on every append's path are marked, and the compiler inlines their callees:
// with link-time optimization (Release) across sources, else within one.
// Replicator::DrainSome and its callers are not marked: GCC guesses the classes
// behind its interfaces, and would inline half of recovery.
//
// Only in optimised builds; in others it would just slow down compilation.
#ifndef ALPHEUS_LOG_BASE_FLATTEN_H_
#define ALPHEUS_LOG_BASE_FLATTEN_H_

// Stands in front of a function's definition.
#if defined(__OPTIMIZE__) && defined(NDEBUG)
#define ALPHEUS_FLATTEN [[gnu::flatten]]
#else
#define ALPHEUS_FLATTEN
#endif

#endif  // ALPHEUS_LOG_BASE_FLATTEN_H_
