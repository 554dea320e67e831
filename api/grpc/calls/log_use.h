// SPDX-License-Identifier: Apache-2.0
// log_use: how calls and streams hold the log that they use.
//
// A callback of the log may run inside any call of the log, also of the thread
// that made it. So a thread that calls the log holds a use of its own, on its
// stack, until the call has returned: the last one that goes lets the log be
// closed (SVD1, served_log.h).
//
// Thread safety: as std::shared_ptr.
#ifndef ALPHEUS_API_GRPC_CALLS_LOG_USE_H_
#define ALPHEUS_API_GRPC_CALLS_LOG_USE_H_

#include <memory>
#include <utility>

#include "api/service/served/served_log.h"

namespace alpheus::rpc {

using SharedUse = std::shared_ptr<service::LogUse>;

inline SharedUse Share(service::LogUse use) {
  return std::make_shared<service::LogUse>(std::move(use));
}

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_LOG_USE_H_
