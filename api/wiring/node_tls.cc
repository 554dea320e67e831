// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/node_tls.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "log/base/status_macros.h"
#include "log/pmem/config_file.h"
#include "quorum/members/peer_name.h"

namespace alpheus {
namespace {

using fabric::tcp::TlsSettings;

// No list of authorities is larger.
constexpr size_t kPemBytesMax = size_t{4} << 20;

absl::StatusOr<std::string> Read(const std::string& path,
                                 absl::string_view what, ReadableBy readers) {
  return ReadConfigFile(path,
                        {.name = what,
                         .bytes_max = kPemBytesMax,
                         .readers = readers,
                         .if_exposed = "make a new one, and a certificate for "
                                       "it"});
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsSettings>> LoadNodeTls(
    const quorum::NodeEncryption& files, Uuid cluster_id, NodeId node) {
  const std::string number =
      node == NodeId(0) ? "operator" : absl::StrCat(node.value);
  const auto path = [&number](const std::string& file) {
    return absl::StrReplaceAll(file, {{"{node}", number}});
  };
  const std::string authorities = path(files.authorities_file);
  const std::string certificate = path(files.certificate_file);
  const std::string key = path(files.key_file);
  fabric::tcp::TlsTexts texts;
  texts.authorities_name =
      absl::StrCat("authorities of the nodes ", authorities);
  texts.certificate_name = absl::StrCat("certificate ", certificate);
  texts.key_name = absl::StrCat("key of the certificate ", key);
  ALPHEUS_ASSIGN_OR_RETURN(
      texts.authorities,
      Read(authorities, "authorities of the nodes", ReadableBy::kAnyone));
  ALPHEUS_ASSIGN_OR_RETURN(
      texts.certificate, Read(certificate, "certificate", ReadableBy::kAnyone));
  ALPHEUS_ASSIGN_OR_RETURN(
      texts.key, Read(key, "key of the certificate", ReadableBy::kOwner));
  ALPHEUS_ASSIGN_OR_RETURN(const std::shared_ptr<const TlsSettings> settings,
                           TlsSettings::Make(texts));
  // A node with an operator's certificate would be refused by the others.
  const absl::Status own =
      node == NodeId(0)
          ? quorum::CheckActsAs(settings->own_name(), cluster_id, node)
          : quorum::CheckIsNode(settings->own_name(), cluster_id, node);
  if (own.ok()) return settings;
  return absl::Status(
      own.code(), absl::StrCat(texts.certificate_name, ": ", own.message()));
}

}  // namespace alpheus
