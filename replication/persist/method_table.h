// SPDX-License-Identifier: Apache-2.0
// method_table: the taxonomy's Tables 2 and 3 as data: for each of 12
// configurations, 2 kinds of update and 3 operations the steps that make it
// persistent, 72 rows.
//
// Idea: what is planned, what is printed and what the model is asked of are the
// same rows. Two assumptions belong to them: a row that sends and has nothing
// copied (NeedsMessagesApplied) has the receive buffer as its log, and recovery
// applies the messages it finds there; and with a FLUSH behind a WRITEIMM the
// immediate itself may be lost.
// The rows of WSP that end in the completion of what they posted rest on
// InfiniBand's and RoCE's completions (§3.2).
//
// Thread safety: constants and pure functions.
// References: remote persistence taxonomy, Tables 1 to 3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_REPLICATION_PERSIST_METHOD_TABLE_H_
#define ALPHEUS_REPLICATION_PERSIST_METHOD_TABLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "replication/persist/method.h"
#include "replication/persist/platform.h"

namespace alpheus {

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
// All, by configuration, then kind, then operation.
std::vector<TableRow> RowsOfTable();

// What Table 1 has there, with the adapter that the tables are made for:
// InfiniBand, which has FLUSH and atomic WRITE.
Platform PlatformOfTable(size_t configuration);

// "Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm".
std::string CellOf(const TableRow& row);

// It sends, and nothing is copied from the buffer.
bool NeedsMessagesApplied(std::span<const Step> steps);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_METHOD_TABLE_H_
