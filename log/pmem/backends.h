// SPDX-License-Identifier: Apache-2.0
// backends: every persistence backend, for the sources that instantiate the
// log's templates for each of them.
//
// Idea: this is the one list of them. A source that defines a class template
// ends with
//   ALPHEUS_INSTANTIATE_CLASS(Forcer);
// and one that defines functions, or some members of a class, with
//   #define ALPHEUS_INSTANTIATE(P) template absl::Status Format<P>(P&)
//   ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);
//   #undef ALPHEUS_INSTANTIATE
// Other sources include the headers of the backends that they use.
#ifndef ALPHEUS_LOG_PMEM_BACKENDS_H_
#define ALPHEUS_LOG_PMEM_BACKENDS_H_

#include "log/pmem/landing_persistence.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"

#define ALPHEUS_FOR_EACH_BACKEND(instantiate, ...)            \
  instantiate(LibpmemPersistence __VA_OPT__(, ) __VA_ARGS__); \
  instantiate(LandingPersistence __VA_OPT__(, ) __VA_ARGS__); \
  instantiate(MsyncPersistence __VA_OPT__(, ) __VA_ARGS__)

#define ALPHEUS_INSTANTIATE_CLASS_FOR(backend, name) \
  template class name<backend>

// Requires: in namespace alpheus, where the members are defined.
#define ALPHEUS_INSTANTIATE_CLASS(name) \
  ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE_CLASS_FOR, name)

#endif  // ALPHEUS_LOG_PMEM_BACKENDS_H_
