// SPDX-License-Identifier: Apache-2.0
// admin_messages: what came of an administrator's orders, as messages of the
// API.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_GRPC_WIRE_ADMIN_MESSAGES_H_
#define ALPHEUS_API_GRPC_WIRE_ADMIN_MESSAGES_H_

#include <vector>

#include "alpheus/recovery_report.h"
#include "alpheus/v1/admin_service.pb.h"
#include "api/admin/cluster_scrub.h"
#include "api/admin/delete_log.h"

namespace alpheus::rpc {

void SetScrubs(const std::vector<ScrubResult>& scrubs, v1::ScrubResponse* out);
void SetDeleted(const DeletedLog& deleted, v1::DeleteLogResponse* out);
void SetMembers(const RecoveryReport& report, v1::MembersChanged* out);

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_WIRE_ADMIN_MESSAGES_H_
