// SPDX-License-Identifier: Apache-2.0
// The log's templates on the crash model: the library's own sources, compiled
// once more for that backend, so that the library itself knows no model.
#include "tools/model/backends.h"

// lint: allow(include-source) these are definitions of templates.
#include "log/core/durability/forcer.cc"
#include "log/core/durability/idle_keeper.cc"
#include "log/core/durability/log_durability.cc"
#include "log/core/durability/replicated_durability.cc"
#include "log/core/durability/replicated_forcer.cc"
#include "log/core/ring/format_region.cc"
#include "log/core/ring/region_repair.cc"
#include "log/core/ring/ring_log.cc"
#include "log/core/space/reclaimer.cc"
#include "log/core/write/record_writer.cc"
#include "recovery/replica/installer.cc"
#include "recovery/replica/local_opening.cc"
#include "recovery/replica/local_replica.cc"
#include "recovery/server/served_log.cc"
#include "replication/session/backup_session.cc"
