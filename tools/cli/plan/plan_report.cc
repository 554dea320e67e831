// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/plan/plan_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace alpheus::cli {

using replication::StepAction;

namespace {

constexpr char kColumns[] = "domain,ddio,rqwrb,update,operation,steps";
constexpr size_t kStepWidth = 24;

// No word contains a quote.
std::string CsvField(const std::string& text) {
  return text.find(',') == std::string::npos ? text
                                             : absl::StrCat("\"", text, "\"");
}

const char* DomainWord(replication::PersistenceDomain domain) {
  constexpr const char* kWords[] = {"dmp", "mhp", "wsp"};
  return kWords[static_cast<size_t>(domain)];
}

const char* MeaningOf(StepAction action) {
  switch (action) {
    case StepAction::kRequesterWrite:
      return "write the bytes to their place";
    case StepAction::kRequesterWriteImmediate:
      return "write the bytes to their place, and notify the responder's "
             "program";
    case StepAction::kRequesterWriteAtomic:
      return "write at most 8 bytes, after all that was posted before";
    case StepAction::kRequesterSend:
      return "send the bytes as a message";
    case StepAction::kRequesterSendAddress:
      return "notify the responder's program of the place of the bytes";
    case StepAction::kRequesterFlush:
      return "push everything posted before to memory";
    case StepAction::kRequesterCompleteWrite:
    case StepAction::kRequesterCompleteWriteImmediate:
    case StepAction::kRequesterCompleteSend:
      return "wait until the responder's adapter has it";
    case StepAction::kRequesterCompleteFlush:
      return "wait until the FLUSH is carried out";
    case StepAction::kRequesterReceiveAck:
      return "wait for the ack";
    case StepAction::kResponderReceive:
      return "wait for the message";
    case StepAction::kResponderReceiveAddress:
      return "learn where the bytes are; they are visible then";
    case StepAction::kResponderCopy:
      return "copy to where the bytes belong";
    case StepAction::kResponderFlush:
      return "write the cache lines back, and fence";
    case StepAction::kResponderCopyAndFlush:
      return "copy to where the bytes belong, write the lines back, and fence; "
             "a before b";
    case StepAction::kResponderSendAck:
      return "send the ack";
  }
  return "?";
}

std::string CostToText(std::span<const replication::Step> steps) {
  const replication::PlanCost cost = replication::CostOf(steps, {});
  return absl::StrFormat(
      "%d round trip%s, %d step%s of the responder's program", cost.round_trips,
      cost.round_trips == 1 ? "" : "s", cost.responder_steps,
      cost.responder_steps == 1 ? "" : "s");
}

std::string PlanToText(const replication::TablePlan& plan) {
  std::string text = absl::StrCat(
      replication::UpdateKindName(plan.row.kind), " update by ",
      replication::UpdateOperationName(plan.row.operation), ": ",
      CostToText(plan.steps), "\n  ", replication::CellOf(plan.row), "\n");
  for (const replication::Step& step : plan.steps) {
    absl::StrAppendFormat(&text, "    %-*s %s\n", kStepWidth,
                          replication::StepName(step), MeaningOf(step.action));
  }
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&text, "  ", note, "\n");
  }
  return text;
}

}  // namespace

std::string RowKey(const replication::Platform& platform,
                   replication::UpdateKind kind,
                   replication::UpdateOperation operation) {
  return absl::StrCat(
      DomainWord(platform.domain), platform.ddio ? ",on" : ",off",
      platform.receive_buffers == replication::ReceiveBuffers::kPmem ? ",pm,"
                                                                     : ",dram,",
      replication::UpdateKindName(kind), ",",
      absl::AsciiStrToLower(replication::UpdateOperationName(operation)));
}

std::string PlansToCsv(std::span<const PlannedUpdate> updates) {
  std::string csv = absl::StrCat(kColumns, "\n");
  for (const PlannedUpdate& update : updates) {
    absl::StrAppend(&csv, RowKey(update), ",",
                    CsvField(replication::StepsToString(update.plan.steps)),
                    "\n");
  }
  return csv;
}

std::string PlansToText(std::span<const PlannedUpdate> updates) {
  std::string text;
  for (const PlannedUpdate& update : updates) {
    if (text.empty()) {
      text = absl::StrCat("platform ",
                          replication::PlatformToString(update.platform), "\n");
    }
    absl::StrAppend(&text, "\n", PlanToText(update.plan));
  }
  return text;
}

std::string CheapestToCsv(std::span<const PlannedUpdate> updates) {
  std::string csv = absl::StrCat(kColumns, ",round_trips,responder_steps\n");
  for (const PlannedUpdate& update : updates) {
    const replication::PlanCost cost =
        replication::CostOf(update.plan.steps, {});
    absl::StrAppend(&csv, RowKey(update), ",",
                    CsvField(replication::StepsToString(update.plan.steps)),
                    ",", cost.round_trips, ",", cost.responder_steps, "\n");
  }
  return csv;
}

std::string CheapestToText(std::span<const PlannedUpdate> updates) {
  std::string text;
  for (const PlannedUpdate& update : updates) {
    absl::StrAppend(&text, RowKey(update), ": ", CostToText(update.plan.steps),
                    "\n  ", replication::StepsToString(update.plan.steps),
                    "\n");
  }
  return text;
}

std::string TableToText(std::span<const PlannedUpdate> updates) {
  std::vector<std::pair<std::string, std::string>> sequences;
  for (const PlannedUpdate& update : updates) {
    const std::string steps = replication::StepsToString(update.plan.steps);
    auto found = std::ranges::find(sequences, steps,
                                   &std::pair<std::string, std::string>::first);
    if (found == sequences.end()) found = sequences.insert(found, {steps, ""});
    absl::StrAppend(&found->second, "  ", RowKey(update), "\n");
  }
  std::string text;
  for (const auto& [steps, keys] : sequences) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", steps, "\n", keys);
  }
  return text;
}

}  // namespace alpheus::cli
