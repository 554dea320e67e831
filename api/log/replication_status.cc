// SPDX-License-Identifier: Apache-2.0
#include "alpheus/replication_status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace alpheus {

std::string ReplicationStatus::ToString() const {
  std::string text =
      absl::StrCat(in_sync, " of ", replicas, " replicas are in sync, ",
                   write_quorum, " must be");
  if (!out_of_sync.empty()) {
    absl::StrAppend(&text, "; out of sync: ", absl::StrJoin(out_of_sync, "; "));
  }
  return text;
}

}  // namespace alpheus
