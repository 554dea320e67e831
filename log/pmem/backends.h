// SPDX-License-Identifier: Apache-2.0
// backends: the list of all persistence backends, for sources that instantiate
// templates for each.
//
// Idea: a source that defines a class template ends with
//   ALPHEUS_INSTANTIATE_CLASS(Forcer);
// and one that defines functions, or some members of a class, with
//   #define ALPHEUS_INSTANTIATE(P) template absl::Status Format<P>(P&)
//   ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);
//   #undef ALPHEUS_INSTANTIATE
// Other sources include the headers of the backends that they use.
#ifndef ALPHEUS_LOG_PMEM_BACKENDS_H_
#define ALPHEUS_LOG_PMEM_BACKENDS_H_

#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/shadow_persistence.h"

#define ALPHEUS_FOR_EACH_BACKEND(instantiate, ...)            \
  instantiate(LibpmemPersistence __VA_OPT__(, ) __VA_ARGS__); \
  instantiate(ShadowPersistence __VA_OPT__(, ) __VA_ARGS__);  \
  instantiate(MsyncPersistence __VA_OPT__(, ) __VA_ARGS__)

#define ALPHEUS_INSTANTIATE_CLASS_FOR(backend, name) \
  template class name<backend>

// Requires: in the namespace of the class, where the members are defined.
#define ALPHEUS_INSTANTIATE_CLASS(name) \
  ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE_CLASS_FOR, name)

#endif  // ALPHEUS_LOG_PMEM_BACKENDS_H_
