// SPDX-License-Identifier: Apache-2.0
// backends: the crash model as the one backend that the log's templates are
// instantiated for; stands in for log/pmem/backends.h in the sources that
// instances.cc and update_instances.cc include.
#ifndef ALPHEUS_TOOLS_MODEL_BACKENDS_H_
#define ALPHEUS_TOOLS_MODEL_BACKENDS_H_

#include "log/pmem/backends.h"
#include "tools/model/memory/crash_model.h"

#undef ALPHEUS_FOR_EACH_BACKEND
#define ALPHEUS_FOR_EACH_BACKEND(instantiate, ...) \
  instantiate(model::ModelPersistence __VA_OPT__(, ) __VA_ARGS__)

#endif  // ALPHEUS_TOOLS_MODEL_BACKENDS_H_
