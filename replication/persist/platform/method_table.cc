// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/method_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "replication/persist/platform/method_steps.h"

namespace alpheus::replication {
namespace {

using Cells = std::span<const Step>[2][3];

// Rows in Table 1's order; in each first Table 2's cells, then Table 3's, each
// by WRITE, WRITEIMM and SEND.
constexpr Cells kTable[kConfigurationCount] = {
    // DMP, DDIO, DRAM
    {{steps::kWriteThenAck, steps::kWriteImmediateThenAck,
      steps::kSendThenFlushedAck},
     {steps::kWritesThenAcks, steps::kWriteImmediatesThenAcks,
      steps::kSendBothThenFlushedAck}},
    // DMP, DDIO, PM
    {{steps::kWriteThenAck, steps::kWriteImmediateThenAck,
      steps::kSendThenFlushedAck},
     {steps::kWritesThenAcks, steps::kWriteImmediatesThenAcks,
      steps::kSendBothThenFlushedAck}},
    // DMP, not DDIO, DRAM
    {{steps::kWriteThenFlush, steps::kWriteImmediateThenFlush,
      steps::kSendThenFlushedAck},
     {steps::kWriteThenAtomicThenFlush, steps::kWriteImmediatesThenFlushes,
      steps::kSendBothThenFlushedAck}},
    // DMP, not DDIO, PM
    {{steps::kWriteThenFlush, steps::kWriteImmediateThenFlush,
      steps::kSendThenFlush},
     {steps::kWriteThenAtomicThenFlush, steps::kWriteImmediatesThenFlushes,
      steps::kSendBothThenFlush}},
    // MHP, DDIO, DRAM
    {{steps::kWriteThenFlush, steps::kWriteImmediateThenFlush,
      steps::kSendThenAck},
     {steps::kWritesThenFlush, steps::kWriteImmediatesThenFlush,
      steps::kSendBothThenAck}},
    // MHP, DDIO, PM
    {{steps::kWriteThenFlush, steps::kWriteImmediateThenFlush,
      steps::kSendThenFlush},
     {steps::kWritesThenFlush, steps::kWriteImmediatesThenFlush,
      steps::kSendBothThenFlush}},
    // MHP, not DDIO, DRAM
    {{steps::kWriteThenFlush, steps::kWriteImmediateThenFlush,
      steps::kSendThenAck},
     {steps::kWritesThenFlush, steps::kWriteImmediatesThenFlush,
      steps::kSendBothThenAck}},
    // MHP, not DDIO, PM
    {{steps::kWriteThenFlush, steps::kWriteImmediateThenFlush,
      steps::kSendThenFlush},
     {steps::kWritesThenFlush, steps::kWriteImmediatesThenFlush,
      steps::kSendBothThenFlush}},
    // WSP, DDIO, DRAM
    {{steps::kWriteCompleted, steps::kWriteImmediateCompleted,
      steps::kSendThenAck},
     {steps::kWritesCompleted, steps::kWriteImmediatesCompleted,
      steps::kSendBothThenAck}},
    // WSP, DDIO, PM
    {{steps::kWriteCompleted, steps::kWriteImmediateCompleted,
      steps::kSendCompleted},
     {steps::kWritesCompleted, steps::kWriteImmediatesCompleted,
      steps::kSendBothCompleted}},
    // WSP, not DDIO, DRAM
    {{steps::kWriteCompleted, steps::kWriteImmediateCompleted,
      steps::kSendThenAck},
     {steps::kWritesCompleted, steps::kWriteImmediatesCompleted,
      steps::kSendBothThenAck}},
    // WSP, not DDIO, PM
    {{steps::kWriteCompleted, steps::kWriteImmediateCompleted,
      steps::kSendCompleted},
     {steps::kWritesCompleted, steps::kWriteImmediatesCompleted,
      steps::kSendBothCompleted}},
};

const char* ColumnOf(UpdateOperation operation) {
  switch (operation) {
    case UpdateOperation::kWrite:
      return "Write";
    case UpdateOperation::kWriteImmediate:
      return "WriteImm";
    case UpdateOperation::kSend:
      return "Send";
  }
  return "?";
}

const char* DomainOf(const Platform& platform) {
  constexpr const char* kDomains[] = {"DMP", "MHP", "WSP"};
  return kDomains[static_cast<size_t>(platform.domain)];
}

}  // namespace

TableRow RowOfTable(size_t configuration, UpdateKind kind,
                    UpdateOperation operation) {
  ALPHEUS_CHECK(configuration < kConfigurationCount, "a line of Table 1");
  return {configuration, kind, operation,
          kTable[configuration][static_cast<size_t>(kind)]
                [static_cast<size_t>(operation)]};
}

std::vector<TableRow> RowsOfTable() {
  std::vector<TableRow> rows;
  for (size_t i = 0; i < kConfigurationCount; ++i) {
    for (const UpdateKind kind : kUpdateKinds) {
      for (const UpdateOperation operation : kUpdateOperations) {
        rows.push_back(RowOfTable(i, kind, operation));
      }
    }
  }
  return rows;
}

Platform PlatformOfTable(size_t configuration) {
  Platform platform;
  platform.domain = static_cast<PersistenceDomain>(configuration / 4);
  platform.ddio = configuration % 4 < 2;
  platform.receive_buffers = static_cast<ReceiveBuffers>(configuration % 2);
  platform.transport = Transport::kInfiniBand;
  platform.native_flush = true;
  platform.atomic_write = true;
  return platform;
}

std::string CellOf(const TableRow& row) {
  const Platform platform = PlatformOfTable(row.configuration);
  return absl::StrCat(
      row.kind == UpdateKind::kSingleton ? "Table 2, " : "Table 3, ",
      DomainOf(platform), platform.ddio ? ", DDIO + " : ", not DDIO + ",
      platform.receive_buffers == ReceiveBuffers::kPmem ? "PM" : "DRAM",
      "-RQWRB, ", ColumnOf(row.operation));
}

bool NeedsMessagesApplied(std::span<const Step> steps) {
  bool sends = false;
  for (const Step& step : steps) {
    if (step.action == StepAction::kResponderCopy ||
        step.action == StepAction::kResponderCopyAndFlush) {
      return false;
    }
    sends = sends || step.action == StepAction::kRequesterSend;
  }
  return sends;
}

}  // namespace alpheus::replication
