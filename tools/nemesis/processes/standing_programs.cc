// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/processes/standing_programs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/processes/patience.h"

namespace alpheus::demo {
namespace {

// How long one program is listened to before the next one.
constexpr int64_t kTurnNanos = 2'000'000;

}  // namespace

absl::StatusOr<ClusterWriter*> StandingPrograms::Start(ClusterWriterPlan plan) {
  plan.stands = true;
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ClusterWriter> program,
                           ClusterWriter::Start(&cluster_, &feed_, plan));
  programs_.push_back(std::move(program));
  return programs_.back().get();
}

absl::Status StandingPrograms::KillAll() {
  for (const auto& program : programs_) {
    ALPHEUS_RETURN_IF_ERROR(program->Kill());
  }
  return absl::OkStatus();
}

ClusterWriter* StandingPrograms::At(int node) const {
  for (const auto& program : programs_) {
    if (program->plan().node == node && !program->end()) return program.get();
  }
  return nullptr;
}

absl::Status StandingPrograms::Listen() {
  // By number: OnEnd may start one more.
  for (size_t i = 0; i < programs_.size(); ++i) {
    ClusterWriter& program = *programs_[i];
    if (program.end()) continue;
    program.Pause(!is_fed_);
    ALPHEUS_RETURN_IF_ERROR(program.RunUntil(UINT64_MAX, kTurnNanos).status());
    if (!program.has_ended_output()) continue;
    ALPHEUS_RETURN_IF_ERROR(program.RunToEnd(kPatienceNanos).status());
    ALPHEUS_RETURN_IF_ERROR(on_end_(program));
  }
  return absl::OkStatus();
}

absl::Status StandingPrograms::ListenFor(int64_t nanos) {
  const int64_t end = Clock::Real().NowNanos() + nanos;
  while (Clock::Real().NowNanos() < end) ALPHEUS_RETURN_IF_ERROR(Listen());
  return absl::OkStatus();
}

absl::Status StandingPrograms::Await(const std::string& what,
                                     absl::FunctionRef<bool()> is_so) {
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  while (!is_so()) {
    if (Clock::Real().NowNanos() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("waited in vain until ", what));
    }
    ALPHEUS_RETURN_IF_ERROR(Listen());
  }
  return absl::OkStatus();
}

absl::Status StandingPrograms::AwaitStanding() {
  return Await("all programs stand", [this] {
    return std::ranges::all_of(programs_, [](const auto& program) {
      return program->end() || program->HasSaidThatItStands();
    });
  });
}

absl::StatusOr<ClusterWriter*> StandingPrograms::AwaitPrimary(
    const ClusterWriter* but, uint64_t ack_count) {
  std::map<const ClusterWriter*, uint64_t> before;
  for (const auto& program : programs_) {
    before[program.get()] = program->ack_count();
  }
  ClusterWriter* primary = nullptr;
  is_fed_ = true;
  const absl::Status status = Await(
      absl::StrCat(
          "a program acknowledged ", ack_count, " records",
          but == nullptr ? "" : absl::StrCat(", other than ", but->ToString())),
      [&] {
        for (const auto& program : programs_) {
          if (program.get() == but || program->end()) continue;
          if (program->ack_count() >= before[program.get()] + ack_count) {
            primary = program.get();
          }
        }
        return primary != nullptr;
      });
  is_fed_ = false;
  ALPHEUS_RETURN_IF_ERROR(status);
  return primary;
}

absl::StatusOr<ProgramResult> StandingPrograms::RunBesideLoad(
    const Program& command) {
  ALPHEUS_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(command));
  child.input().Close();
  std::optional<ProcessEnd> end;
  is_fed_ = true;
  const absl::Status status =
      Await(absl::StrCat(absl::StrJoin(command.argv, " "), " has ended"), [&] {
        end = child.WaitFor(0);
        return end.has_value();
      });
  is_fed_ = false;
  ALPHEUS_RETURN_IF_ERROR(status);
  ProgramResult result{.end = *end, .output = {}, .error = {}};
  while (ReadSome(child.output().get(), &result.output)) {
  }
  while (ReadSome(child.error().get(), &result.error)) {
  }
  return result;
}

std::vector<WriterFacts> StandingPrograms::Terms() const {
  std::vector<WriterFacts> all;
  for (const auto& program : programs_) {
    std::vector<WriterFacts> terms = program->Terms();
    std::ranges::move(terms, std::back_inserter(all));
  }
  return all;
}

uint64_t StandingPrograms::AckCount() const {
  uint64_t count = 0;
  for (const auto& program : programs_) count += program->ack_count();
  return count;
}

size_t StandingPrograms::EpochCount() const {
  size_t count = 0;
  for (const auto& program : programs_) count += program->Epochs().size();
  return count;
}

std::string StandingPrograms::Said() const {
  std::string said;
  for (const auto& program : programs_) {
    absl::StrAppend(&said, "--- ", program->ToString(),
                    program->end() ? " (ended)" : "", " said:\n",
                    program->said());
  }
  return said;
}

}  // namespace alpheus::demo
