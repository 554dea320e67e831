// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/node_stubs.h"

#include <grpcpp/grpcpp.h>

namespace alpheus::client {
namespace {

constexpr int kReconnectMillisMin = 10;
constexpr int kReconnectMillisMax = 1'000;
// A message of records may have one of 16 MiB, and some before it.
constexpr int kMessageBytesMax = 32 << 20;

}  // namespace

NodeStubs::Stub* NodeStubs::At(const std::string& address) {
  if (!security_.CheckAddress(address).ok()) return nullptr;
  std::unique_ptr<Stub>& stub = stubs_[address];
  if (stub == nullptr) {
    grpc::ChannelArguments arguments;
    // The client alone sends a request again.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                     kReconnectMillisMin);
    // It is no rest: a connection that takes longer is given up.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, connect_ms_);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMillisMax);
    arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
    const auto credentials = security_.Apply(&arguments);
    stub = v1::LogService::NewStub(
        grpc::CreateCustomChannel(address, credentials, arguments));
  }
  return stub.get();
}

}  // namespace alpheus::client
