// SPDX-License-Identifier: Apache-2.0
// bare_stream: a stream of requests without the service's client: the floor of
// a client.
//
// Idea: it keeps no request, and trusts that answers come in order. As the
// client does, it lets a message carry what is ready, and has one message being
// written at most.
//
// Thread safety: all members concurrently, except the destructor.
#ifndef ALPHEUS_BENCH_SERVICE_GRPC_BARE_STREAM_H_
#define ALPHEUS_BENCH_SERVICE_GRPC_BARE_STREAM_H_

#include <memory>
#include <string>

#include "bench/service/load/appender.h"

namespace alpheus::bench::service {

// Opens a stream to that server. It must be none that keeps a log. Payloads
// that are under way together must be equal.
std::unique_ptr<Appender> OpenBareStream(const std::string& address);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_GRPC_BARE_STREAM_H_
