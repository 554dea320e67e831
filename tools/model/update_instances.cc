// SPDX-License-Identifier: Apache-2.0
// The responder of updates on the crash model, as instances.cc has the log.
#include "tools/model/backends.h"

// lint: allow(include-source) these are definitions of templates.
#include "replication/persist/execute/update_responder.cc"
