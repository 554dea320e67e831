// SPDX-License-Identifier: Apache-2.0
#include "tools/model/methods/weakening.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::model {

using replication::Step;
using replication::StepAction;
using replication::UpdatePart;

namespace {

using Steps = std::vector<Step>;

bool IsMessage(StepAction action) {
  return action == StepAction::kRequesterWriteImmediate ||
         action == StepAction::kRequesterSend ||
         action == StepAction::kRequesterSendAddress;
}

bool IsReceive(StepAction action) {
  return action == StepAction::kResponderReceive ||
         action == StepAction::kResponderReceiveAddress;
}

bool IsSendAck(StepAction action) {
  return action == StepAction::kResponderSendAck;
}

bool IsReceiveAck(StepAction action) {
  return action == StepAction::kRequesterReceiveAck;
}

// Returns the step that waits for the completion of `action`; FLUSH and
// operations that carry bytes have one.
std::optional<StepAction> CompletionOf(StepAction action) {
  switch (action) {
    case StepAction::kRequesterWrite:
      return StepAction::kRequesterCompleteWrite;
    case StepAction::kRequesterWriteImmediate:
      return StepAction::kRequesterCompleteWriteImmediate;
    case StepAction::kRequesterSend:
      return StepAction::kRequesterCompleteSend;
    case StepAction::kRequesterFlush:
      return StepAction::kRequesterCompleteFlush;
    default:
      return std::nullopt;
  }
}

// Returns the receipt of a sent message: the n-th received is the n-th sent.
template <class IsSent, class IsReceived>
std::optional<size_t> ReceiptOf(std::span<const Step> steps, size_t sent,
                                const IsSent& is_sent,
                                const IsReceived& is_received) {
  if (!is_sent(steps[sent].action)) return std::nullopt;
  const auto before =
      std::ranges::count_if(steps.first(sent), is_sent, &Step::action);
  std::ptrdiff_t receipts = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (is_received(steps[i].action) && receipts++ == before) return i;
  }
  return std::nullopt;
}

// Returns the wait that this operation ends: the last such operation before it.
std::optional<size_t> WaitFor(std::span<const Step> steps, size_t operation) {
  const auto completion = CompletionOf(steps[operation].action);
  if (!completion) return std::nullopt;
  const Step wait = {*completion, steps[operation].part};
  for (size_t i = operation + 1; i < steps.size(); ++i) {
    if (steps[i] == wait) return i;
    if (steps[i] == steps[operation]) return std::nullopt;
  }
  return std::nullopt;
}

Steps Without(std::span<const Step> steps, std::vector<size_t> dropped) {
  Steps left;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!std::ranges::count(dropped, i)) left.push_back(steps[i]);
  }
  return left;
}

Weakening Drop(std::span<const Step> steps, size_t index) {
  std::vector<size_t> dropped = {index};
  std::string what =
      absl::StrCat("without ", replication::StepName(steps[index]));
  for (const std::optional<size_t>& widow :
       {ReceiptOf(steps, index, IsMessage, IsReceive),
        ReceiptOf(steps, index, IsSendAck, IsReceiveAck),
        WaitFor(steps, index)}) {
    if (!widow) continue;
    dropped.push_back(*widow);
    absl::StrAppend(&what, " and ", replication::StepName(steps[*widow]));
  }
  return {Weakening::Kind::kDropped, what, Without(steps, std::move(dropped))};
}

std::optional<Weakening> Swap(std::span<const Step> steps, size_t index) {
  const bool is_responders = replication::IsOfResponder(steps[index].action);
  const auto next = std::find_if(
      steps.begin() + static_cast<std::ptrdiff_t>(index) + 1, steps.end(),
      [is_responders](const Step& step) {
        return replication::IsOfResponder(step.action) == is_responders;
      });
  if (next == steps.end() || *next == steps[index]) return std::nullopt;
  Steps swapped(steps.begin(), steps.end());
  std::swap(swapped[index], swapped[static_cast<size_t>(next - steps.begin())]);
  return Weakening{Weakening::Kind::kSwapped,
                   absl::StrCat(replication::StepName(*next), " before ",
                                replication::StepName(steps[index])),
                   std::move(swapped)};
}

Weakening Replace(std::span<const Step> steps, size_t first, size_t count,
                  const Steps& by) {
  const auto rest = steps.subspan(first + count);
  Steps weaker(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(first));
  weaker.insert(weaker.end(), by.begin(), by.end());
  weaker.insert(weaker.end(), rest.begin(), rest.end());
  return {Weakening::Kind::kWeaker,
          absl::StrCat(replication::StepsToString(by), " for ",
                       replication::StepsToString(steps.subspan(first, count))),
          std::move(weaker)};
}

void AddWeakerCopies(std::span<const Step> steps, size_t index,
                     std::vector<Weakening>* all) {
  const auto [action, part] = steps[index];
  const auto add = [&](const Steps& by) {
    all->push_back(Replace(steps, index, 1, by));
  };
  if (action == StepAction::kResponderCopyAndFlush) {
    add({{StepAction::kResponderCopy, part}});
  }
  if (part != UpdatePart::kBoth) return;
  add({{action, UpdatePart::kB}, {action, UpdatePart::kA}});
  if (action == StepAction::kResponderCopyAndFlush) {
    add({{StepAction::kResponderCopy, part},
         {StepAction::kResponderFlush, UpdatePart::kA},
         {StepAction::kResponderFlush, UpdatePart::kB}});
  }
}

void AddWeaker(std::span<const Step> steps, size_t index,
               std::vector<Weakening>* all) {
  const Step& step = steps[index];
  if (step.action == StepAction::kResponderCopy ||
      step.action == StepAction::kResponderCopyAndFlush) {
    AddWeakerCopies(steps, index, all);
  }
  if (step.action == StepAction::kRequesterWriteAtomic) {
    all->push_back(
        Replace(steps, index, 1, {{StepAction::kRequesterWrite, step.part}}));
  }
  const bool is_awaited_flush =
      step.action == StepAction::kRequesterFlush && index > 0 &&
      index + 1 < steps.size() &&
      steps[index + 1].action == StepAction::kRequesterCompleteFlush;
  if (!is_awaited_flush) return;
  const Step& before = steps[index - 1];
  if (const auto completion = CompletionOf(before.action)) {
    all->push_back(Replace(steps, index, 2, {{*completion, before.part}}));
  }
}

}  // namespace

std::vector<Weakening> WeakeningsOf(std::span<const Step> steps) {
  std::vector<Weakening> all;
  for (size_t i = 0; i < steps.size(); ++i) {
    all.push_back(Drop(steps, i));
    if (auto swapped = Swap(steps, i)) all.push_back(*std::move(swapped));
    AddWeaker(steps, i, &all);
  }
  return all;
}

}  // namespace alpheus::model
