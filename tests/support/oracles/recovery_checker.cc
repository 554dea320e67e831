// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/recovery_checker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mix.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus::testing {
namespace {

// A word that a power cut could still change though the opened log is made of
// it (P-H7), or nothing. What lies behind the log's end is no part of it, and
// the mark of a cleaned record is a hint.
std::string FindUnpersisted(ModelPersistence& model,
                            const OpenedEpoch& opened) {
  const uint64_t ring_offset = opened.start.superline.ring_offset;
  const Ring ring = RingOf(model.region(), opened.start.superline);
  const uint64_t live_bytes = opened.start.end.offset - opened.head.offset;
  for (size_t offset = 0; offset < model.region().size();
       offset += sizeof(uint64_t)) {
    if (std::memcmp(model.region().data() + offset,
                    model.persistent().data() + offset,
                    sizeof(uint64_t)) == 0) {
      continue;
    }
    if (offset >= ring_offset) {
      const uint64_t behind_head = offset - ring_offset + ring.capacity() -
                                   ring.Place(opened.head.offset);
      if (behind_head % ring.capacity() >= live_bytes ||
          offset % kLineBytes == offsetof(RecordHeader, cleaned)) {
        continue;
      }
    }
    return absl::StrCat("recovery returned, but the word at ", offset,
                        " is not persisted (P-H7)");
  }
  return "";
}

std::string DescribeDifference(const RecoveredLog& expected,
                               const RecoveredLog& found) {
  return absl::StrCat("\n expected:\n", expected.Describe(), " found:\n",
                      found.Describe());
}

bool Same(const RecoveredLog& a, const RecoveredLog& b) {
  return a.head == b.head &&
         std::equal(a.records.begin(), a.records.end(), b.records.begin(),
                    b.records.end(),
                    [](const auto& x, const auto& y) { return x.SameAs(y); });
}

}  // namespace

RecoveryChecker::RecoveryChecker(const Options& options)
    : options_(options),
      waiter_([] { return "one more record after a recovery"; }),
      extra_payload_(kOneLineBytes, 'X') {
  for (Level& level : levels_) {
    level.crashes = std::make_unique<CrashEnumerator>(options.nested);
  }
}

std::string RecoveryChecker::Check(std::span<const std::byte> image,
                                   uint64_t hash, const LogOracle& oracle) {
  Model(0, 0, image.size()).Reset(image);
  return CheckAt(0, hash, oracle, CrashesInside(0, hash));
}

std::string RecoveryChecker::CheckAfterKill(const ModelPersistence& model,
                                            uint64_t hash,
                                            const LogOracle& oracle) {
  Model(0, 0, model.persistent().size()).CopyAfterKill(model);
  const std::string wrong = CheckAt(0, hash, oracle, /*crash_inside=*/true);
  return wrong.empty() ? wrong : absl::StrCat("killed, not cut: ", wrong);
}

bool RecoveryChecker::CrashesInside(int level, uint64_t hash) const {
  return level < options_.depth &&
         hash % options_.crash_inside_one_in[level] == 0;
}

std::string RecoveryChecker::CheckAt(int level, uint64_t hash,
                                     const LogOracle& oracle,
                                     bool crash_inside) {
  ModelPersistence& model = *levels_[level].models[0];
  std::string wrong_inside;
  if (crash_inside) {
    model.SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive == ModelPersistence::Primitive::kFence &&
          wrong_inside.empty()) {
        wrong_inside = CheckCrashesInside(level, model, oracle);
      }
    });
  }
  ++recoveries_;
  const absl::StatusOr<OpenedEpoch> opened =
      OpenModel(model, Mix(Mix(options_.seed, hash), level));
  model.SetHook({});
  if (!wrong_inside.empty()) return wrong_inside;
  if (!opened.ok()) {
    return absl::StrCat("the log does not open again: ",
                        opened.status().ToString());
  }
  const absl::StatusOr<RecoveredLog> recovered = ReadRecovered(model, *opened);
  if (!recovered.ok()) return recovered.status().ToString();
  if (std::string wrong = oracle.Check(*recovered); !wrong.empty()) {
    return absl::StrCat(wrong, "\n expected:\n", oracle.Describe(),
                        " recovered:\n", recovered->Describe());
  }
  if (std::string wrong = FindUnpersisted(model, *opened); !wrong.empty()) {
    return wrong;
  }
  if (level > 0 && hash % options_.nested_repeat_one_in != 0) return "";
  return CheckRepeats(level, *opened, *recovered, hash / 4);
}

std::string RecoveryChecker::CheckCrashesInside(int level,
                                                ModelPersistence& model,
                                                const LogOracle& oracle) {
  std::string wrong;
  const auto visit = [&](const CrashState& state) {
    if (!wrong.empty()) return;
    ++nested_states_[level];
    Model(level + 1, 0, state.image.size()).Reset(state.image);
    wrong = CheckAt(level + 1, state.hash, oracle,
                    CrashesInside(level + 1, state.hash));
    if (!wrong.empty()) {
      wrong = absl::StrCat(wrong, "\n crash inside recovery, before fence ",
                           model.fence_count() + 1, ":\n", state.Describe());
    }
  };
  levels_[level].crashes->Enumerate(model, oracle.Digest(), visit);
  return wrong;
}

std::string RecoveryChecker::CheckRepeats(int level, const OpenedEpoch& opened,
                                          const RecoveredLog& first,
                                          uint64_t hash) {
  auto& models = levels_[level].models;
  const size_t size = models[0]->region().size();
  RecoveredLog expected = first;
  OpenedEpoch again;
  // Half of the images are recovered twice before the next record comes, the
  // others twice after it.
  const bool append_last = hash % 2 == 0;
  if (append_last) {
    std::string wrong = RecoverAgain(*models[0], Model(level, 1, size),
                                     expected, "recovering again", &again);
    if (wrong.empty()) wrong = AppendOneMore(*models[1], again, &expected);
    if (!wrong.empty()) return wrong;
  } else {
    std::string wrong = AppendOneMore(*models[0], opened, &expected);
    if (wrong.empty()) {
      wrong = RecoverAgain(*models[0], Model(level, 1, size), expected,
                           "one more record", &again);
    }
    if (!wrong.empty()) return wrong;
  }
  return RecoverAgain(
      *models[1], Model(level, 2, size), expected,
      append_last ? "one more record" : "one more record and recovering again",
      &again);
}

std::string RecoveryChecker::RecoverAgain(ModelPersistence& from,
                                          ModelPersistence& to,
                                          const RecoveredLog& expected,
                                          const char* after,
                                          OpenedEpoch* opened) {
  ++recoveries_;
  to.Reset(from.persistent());
  absl::StatusOr<OpenedEpoch> again =
      OpenModel(to, Mix(options_.seed, ++nonce_count_));
  if (!again.ok()) {
    return absl::StrCat("after ", after,
                        ": does not open: ", again.status().ToString());
  }
  const absl::StatusOr<RecoveredLog> recovered = ReadRecovered(to, *again);
  if (!recovered.ok()) {
    return absl::StrCat("after ", after, ": ", recovered.status().ToString());
  }
  if (!Same(expected, *recovered)) {
    return absl::StrCat("P-C4: after ", after, " the log differs",
                        DescribeDifference(expected, *recovered));
  }
  *opened = *std::move(again);
  return "";
}

std::string RecoveryChecker::AppendOneMore(ModelPersistence& model,
                                           const OpenedEpoch& opened,
                                           RecoveredLog* expected) {
  ModelLog log(model, model.region(), opened.start, OptionsOfTiny(), clock_,
               waiter_);
  const std::array<std::span<const std::byte>, 1> parts = {
      AsBytes(extra_payload_)};
  const absl::StatusOr<Lsn> lsn = log.Append(parts, 1, Deadline());
  if (!lsn.ok() &&
      lsn.status().code() != absl::StatusCode::kResourceExhausted) {
    return absl::StrCat("append after recovery: ", lsn.status().ToString());
  }
  if (lsn.ok() && *lsn != expected->next()) {
    return absl::StrCat("the record after recovery got LSN ", lsn->value,
                        " instead of ", expected->next().value);
  }
  // Short of room, the head may have moved over what nobody needs.
  while (expected->head < log.head_lsn()) {
    const RecoveredLog::Record& oldest = expected->records.front();
    if (!oldest.cleaned && !oldest.aborted) {
      return absl::StrCat("the head moved over LSN ", expected->head.value);
    }
    expected->records.erase(expected->records.begin());
    expected->head = expected->head + 1;
  }
  if (lsn.ok()) {
    expected->records.push_back({false, false, AsBytes(extra_payload_)});
  }
  return "";
}

ModelPersistence& RecoveryChecker::Model(int level, int which, size_t bytes) {
  std::unique_ptr<ModelPersistence>& model = levels_[level].models[which];
  if (model == nullptr || model->region().size() != bytes) {
    model = std::make_unique<ModelPersistence>(bytes);
  }
  return *model;
}

RecoveryChecker::Counts RecoveryChecker::counts() const {
  Counts counts;
  counts.recoveries = recoveries_;
  counts.nested_states = nested_states_;
  return counts;
}

}  // namespace alpheus::testing
