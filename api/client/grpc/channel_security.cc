// SPDX-License-Identifier: Apache-2.0
#include "api/client/grpc/channel_security.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "log/base/status_macros.h"

namespace alpheus::client {
namespace {

bool IsPort(absl::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return absl::ascii_isdigit(c);
  });
}

// Four numbers of 127.0.0.0/8, written out. Other spellings are names to some.
bool IsLoopbackNumber(absl::string_view host) {
  const std::vector<std::string> parts = absl::StrSplit(host, '.');
  if (parts.size() != 4 || parts.front() != "127") return false;
  return std::ranges::all_of(parts, [](const std::string& part) {
    uint32_t number = 0;
    const bool is_octal = part.size() > 1 && part.front() == '0';  // to some
    return IsPort(part) && !is_octal && part.size() <= 3 &&
           absl::SimpleAtoi(part, &number) && number <= 255;
  });
}

absl::Status CheckTogether(const ClientSecurity& options) {
  const bool names_files =
      !options.ca_file.empty() || !options.ca_pem.empty() ||
      !options.certificate_file.empty() || !options.key_file.empty() ||
      !options.server_name.empty();
  if (!options.uses_tls && names_files) {
    return absl::InvalidArgumentError(
        "security: authorities, a certificate or a server's name without TLS. "
        "Set uses_tls, or none of them");
  }
  if (!options.ca_file.empty() && !options.ca_pem.empty()) {
    return absl::InvalidArgumentError(
        "security: both ca_file and ca_pem are set. Set one of them");
  }
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError(
        "security: a certificate needs its key, and a key its certificate. Set "
        "both, certificate_file and key_file");
  }
  // gRPC ends the process for others.
  const bool is_token = std::ranges::all_of(
      options.token, [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (is_token) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "security: the token has white space or bytes that no token has. Is "
      "there a line end behind it?");
}

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file && absl::StrContains(text, "-----BEGIN ")) return text;
  if (file) {
    return absl::InvalidArgumentError(
        absl::StrCat("security: ", path, ": expected PEM, BEGIN and END"));
  }
  return absl::NotFoundError(
      absl::StrCat("security: ", path, " can't be read. Is the path right?"));
}

}  // namespace

bool IsLoopback(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || !IsPort(address.substr(colon + 1))) {
    return false;
  }
  const std::string host = address.substr(0, colon);
  return absl::EqualsIgnoreCase(host, "localhost") || host == "[::1]" ||
         IsLoopbackNumber(host);
}

absl::StatusOr<ChannelSecurity> ChannelSecurity::Load(
    const ClientSecurity& options, const std::vector<std::string>& addresses) {
  if (addresses.empty()) {
    return absl::InvalidArgumentError(
        "no address: name at least one node that serves the log");
  }
  ALPHEUS_RETURN_IF_ERROR(CheckTogether(options));
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (options.uses_tls) {
    grpc::SslCredentialsOptions ssl;
    ALPHEUS_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem(options.ca_file));
    if (!options.ca_pem.empty()) ssl.pem_root_certs = options.ca_pem;
    ALPHEUS_ASSIGN_OR_RETURN(ssl.pem_cert_chain,
                             ReadPem(options.certificate_file));
    ALPHEUS_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem(options.key_file));
    credentials = grpc::SslCredentials(ssl);
  } else {
    credentials = grpc::InsecureChannelCredentials();
  }
  ChannelSecurity security(options, std::move(credentials));
  for (const std::string& address : addresses) {
    ALPHEUS_RETURN_IF_ERROR(security.CheckAddress(address));
  }
  return security;
}

absl::Status ChannelSecurity::CheckAddress(const std::string& address) const {
  if (has_tls_ || token_.empty() || IsLoopback(address)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "security: without TLS everybody on the way to ", address,
      " could read the token. Set uses_tls; or name 127.0.0.1, [::1] or "
      "localhost, if the node is on this machine"));
}

std::shared_ptr<grpc::ChannelCredentials> ChannelSecurity::Apply(
    grpc::ChannelArguments* arguments) const {
  if (!server_name_.empty()) {
    arguments->SetSslTargetNameOverride(server_name_);
  }
  // A proxy of the environment is another machine.
  if (!has_tls_ && !token_.empty()) {
    arguments->SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  }
  return credentials_;
}

void ChannelSecurity::Authorize(grpc::ClientContext* context) const {
  if (token_.empty()) return;
  context->AddMetadata("authorization", absl::StrCat("Bearer ", token_));
}

}  // namespace alpheus::client
