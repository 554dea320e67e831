// SPDX-License-Identifier: Apache-2.0
// log_client_options: what a client can be told.
//
// Thread safety: plain values.
#ifndef ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_OPTIONS_H_
#define ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "api/client/append/append_session.h"
#include "api/client/locate/primary_search.h"

namespace alpheus::client {

// Bytes of payload that the service takes in one request. A log often takes
// less (max_payload_bytes of its status).
inline constexpr size_t kRequestBytesMax = (size_t{16} << 20) - (64 << 10);

// How a client and its nodes know each other. As it is: neither TLS nor a
// token.
struct ClientSecurity {
  bool uses_tls = false;
  // Authorities of the nodes' certificates, as PEM: a file, or its text; none:
  // those of the system.
  std::string ca_file = {};
  std::string ca_pem = {};
  // The client's own certificate and its key, files with PEM: for nodes with
  // --tls-client-ca.
  std::string certificate_file = {};
  std::string key_file = {};
  // The token, for nodes with --tokens. Without TLS only to loopback addresses.
  std::string token = {};
  // Name that the nodes' certificates have, if it is not that of the address.
  std::string server_name = {};
};

struct LogClientOptions {
  // Nodes that may be primary, "host:port" of alpheusd --serve. At least one.
  std::vector<std::string> addresses;
  std::string log = "main";
  ClientSecurity security = {};
  // When requests are answered that say nothing of it themselves.
  Durability durability = Durability::kQuorum;
  AppendLimits limits = {};
  SearchTimes search = {};
  // Bytes of payloads that one message has at most, unless it has one payload.
  size_t message_bytes_max = size_t{64} << 10;
  // Milliseconds that a node has to answer one question, and to take a
  // connection.
  uint32_t answer_ms = 2'000;
  // Milliseconds that a primary may owe an answer and say nothing. Then the
  // client asks it, or a later one, what it has. A short time does no harm but
  // for the messages.
  uint32_t stall_ms = 2'000;

  int64_t answer_ns() const { return answer_ms * int64_t{1'000'000}; }
  int64_t stall_ns() const { return stall_ms * int64_t{1'000'000}; }
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_LOG_CLIENT_OPTIONS_H_
