// SPDX-License-Identifier: Apache-2.0
// node_tls: the certificate of this process, with which it encrypts what it
// sends to other processes of its cluster.
//
// Thread safety: reads files; any thread.
// References: docs/use/operating.md#encryption-between-nodes.
#ifndef ALPHEUS_API_WIRING_NODE_TLS_H_
#define ALPHEUS_API_WIRING_NODE_TLS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/members/configuration.h"
#include "replication/fabric/tcp/tls.h"

namespace alpheus {

// Loads the files. `node`: of this process; 0: an operator. Errors: as
// ReadConfigFile (log/pmem/config_file.h; the key is a secret) and
// TlsSettings::Make; PermissionDenied (the certificate is of another process or
// cluster).
absl::StatusOr<std::shared_ptr<const fabric::tcp::TlsSettings>> LoadNodeTls(
    const quorum::NodeEncryption& files, Uuid cluster_id, NodeId node);

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_NODE_TLS_H_
