// SPDX-License-Identifier: Apache-2.0
// method_table: the taxonomy's Tables 2 and 3 as data: for each of 12
// configurations, 2 kinds of update and 3 operations, the steps that make it
// persistent: 72 rows.
//
// Idea: planner, output and model use the same rows. A caller must know three
// things about them:
//   * A row that sends and has nothing copied (NeedsMessagesApplied) uses the
//     receive buffer as its log: recovery applies the messages in it.
//   * Where a FLUSH follows a WRITEIMM, only the bytes are persistent: the
//     immediate itself may be lost.
//   * A row of WSP that ends in the completion of its own operation rests on
//     what InfiniBand and RoCE mean by a completion (§3.2).
//
// Thread safety: constants and pure functions.
// References: remote persistence taxonomy, Tables 1 to 3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_TABLE_H_
#define ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_TABLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::replication {

inline constexpr UpdateKind kUpdateKinds[] = {UpdateKind::kSingleton,
                                              UpdateKind::kCompound};
inline constexpr UpdateOperation kUpdateOperations[] = {
    UpdateOperation::kWrite, UpdateOperation::kWriteImmediate,
    UpdateOperation::kSend};

struct TableRow {
  size_t configuration = 0;  // < kConfigurationCount
  UpdateKind kind = UpdateKind::kSingleton;
  UpdateOperation operation = UpdateOperation::kWrite;
  std::span<const Step> steps;
};

TableRow RowOfTable(size_t configuration, UpdateKind kind,
                    UpdateOperation operation);
// Returns all rows, by configuration, then kind, then operation.
std::vector<TableRow> RowsOfTable();

// Returns Table 1's platform, with the adapter that the tables assume:
// InfiniBand, with FLUSH and atomic WRITE.
Platform PlatformOfTable(size_t configuration);

// Returns "Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm".
std::string CellOf(const TableRow& row);

// Returns true if the steps send, and copy nothing from the buffer.
bool NeedsMessagesApplied(std::span<const Step> steps);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_TABLE_H_
