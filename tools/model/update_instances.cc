// SPDX-License-Identifier: Apache-2.0
// The responder of updates on the crash model, as instances.cc has the log.
#include "tools/model/backends.h"

// NOLINTNEXTLINE(bugprone-suspicious-include): definitions of templates.
#include "replication/persist/execute/update_responder.cc"
