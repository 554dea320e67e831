// SPDX-License-Identifier: Apache-2.0
// channel_security: how connections to nodes are secured, and what a client
// shows there.
//
// Idea: nodes name other nodes, so a client connects to addresses that nobody
// has checked. Each of them is judged here before anything is sent.
//
// Invariants:
//   CHS1. A token leaves this machine only through TLS.
// Thread safety: immutable; Authorize for one call at a time.
// References: docs/use/operating.md#clients-with-tls-and-tokens.
#ifndef ALPHEUS_API_CLIENT_GRPC_CHANNEL_SECURITY_H_
#define ALPHEUS_API_CLIENT_GRPC_CHANNEL_SECURITY_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/client/grpc/log_client_options.h"

namespace alpheus::client {

// Returns whether an address, "host:port", is of this machine by its spelling:
// localhost, 127.x.x.x or [::1]. A name may lead anywhere tomorrow.
bool IsLoopback(const std::string& address);

class ChannelSecurity {
 public:
  // Reads the files. Errors: InvalidArgument (no address; options that don't go
  // together; a token that is none, or that would leave this machine without
  // TLS on the way to one of `addresses`); NotFound (a file that can't be
  // read).
  static absl::StatusOr<ChannelSecurity> Load(
      const ClientSecurity& options, const std::vector<std::string>& addresses);

  // Checks CHS1. Errors: InvalidArgument.
  absl::Status CheckAddress(const std::string& address) const;
  // Sets what a channel needs.
  std::shared_ptr<grpc::ChannelCredentials> Apply(
      grpc::ChannelArguments* arguments) const;
  // Shows the token in a call. Requires: the channel's address was checked.
  void Authorize(grpc::ClientContext* context) const;

 private:
  ChannelSecurity(const ClientSecurity& options,
                  std::shared_ptr<grpc::ChannelCredentials> credentials)
      : has_tls_(options.uses_tls),
        token_(options.token),
        server_name_(options.server_name),
        credentials_(std::move(credentials)) {}

  bool has_tls_;
  std::string token_;
  std::string server_name_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_CHANNEL_SECURITY_H_
