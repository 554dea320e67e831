// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/plan/plan_verification.h"

#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replication/persist/plan/table_planner.h"
#include "tools/cli/plan/plan_report.h"

namespace alpheus::cli {

using model::RowVerdict;
using replication::PlatformOfTable;
using replication::TableRow;

namespace {

std::string KeyOf(const TableRow& row) {
  return RowKey(PlatformOfTable(row.configuration), row.kind, row.operation);
}

class Verifier {
 public:
  PlanVerification Run() {
    found_.table = replication::RowsOfTable();
    for (const TableRow& row : found_.table) {
      VerifyRow(row);
      VerifyWeakenings(row);
      VerifyVariants(row);
      VerifyPlans(row);
      VerifyElsewhere(row);
    }
    return std::move(found_);
  }

 private:
  // `steps` on a platform; recovery is that which `row` needs.
  RowVerdict Explore(const TableRow& row,
                     std::span<const replication::Step> steps,
                     const replication::Platform& platform,
                     bool relaxed_ordering = false) {
    const model::RowWorld::Options options = {
        .platform = platform,
        .relaxed_ordering = relaxed_ordering,
        .applies_messages = replication::NeedsMessagesApplied(row.steps)};
    const std::string key =
        absl::StrCat(replication::UpdateKindName(row.kind),
                     replication::StepsToString(steps),
                     replication::PlatformToString(platform), relaxed_ordering,
                     options.applies_messages);
    const auto [known, is_new] = known_.try_emplace(key);
    if (is_new) {
      const model::RowResult result =
          model::ExploreRow(options, row.kind, steps);
      known->second = result.verdict;
      ++found_.explorations;
      found_.states += result.states;
      found_.images += result.images;
    }
    return known->second;
  }

  void VerifyRow(const TableRow& row) {
    const RowVerdict verdict =
        Explore(row, row.steps, PlatformOfTable(row.configuration));
    found_.rows.Add(verdict);
    if (verdict == RowVerdict::kOk) return;
    found_.insufficient_rows.push_back(
        absl::StrCat(KeyOf(row), ": ", model::RowVerdictName(verdict)));
  }

  void VerifyWeakenings(const TableRow& row) {
    for (const model::Weakening& weakening : model::WeakeningsOf(row.steps)) {
      const RowVerdict verdict =
          Explore(row, weakening.steps, PlatformOfTable(row.configuration));
      found_.weakenings[static_cast<size_t>(weakening.kind)].Add(verdict);
      if (verdict != RowVerdict::kOk) continue;
      found_.harmless_weakenings.push_back(
          absl::StrCat(KeyOf(row), ": ", weakening.what));
    }
  }

  void VerifyVariants(const TableRow& row) {
    replication::Platform iwarp = PlatformOfTable(row.configuration);
    iwarp.transport = replication::Transport::kIwarp;
    const RowVerdict on_iwarp = Explore(row, row.steps, iwarp);
    found_.on_iwarp.Add(on_iwarp);
    found_.on_iwarp_by_domain[static_cast<size_t>(iwarp.domain)].Add(on_iwarp);
    const RowVerdict relaxed =
        Explore(row, row.steps, PlatformOfTable(row.configuration),
                /*relaxed_ordering=*/true);
    found_.with_relaxed_ordering.Add(relaxed);
    if (relaxed == RowVerdict::kOk) return;
    found_.broken_by_relaxed_ordering.push_back(
        absl::StrCat(KeyOf(row), ": ", model::RowVerdictName(relaxed)));
  }

  RowVerdict ExplorePlan(const TableRow& row,
                         const replication::Platform& platform) {
    const replication::TablePlan plan =
        replication::PlanOfTable(platform, row.kind, row.operation);
    return Explore(plan.row, plan.steps, platform);
  }

  void VerifyPlans(const TableRow& row) {
    replication::Platform platform = PlatformOfTable(row.configuration);
    platform.atomic_write = false;
    found_.planned_without_atomic_write.Add(ExplorePlan(row, platform));
    platform.transport = replication::Transport::kIwarp;
    found_.planned_for_iwarp.Add(ExplorePlan(row, platform));
    platform.transport = replication::Transport::kTcp;
    found_.planned_for_tcp.Add(ExplorePlan(row, platform));
  }

  void VerifyElsewhere(const TableRow& row) {
    VerdictCounts& counts = found_.cross.emplace_back();
    for (size_t i = 0; i < replication::kConfigurationCount; ++i) {
      if (i == row.configuration) continue;
      const RowVerdict verdict = Explore(row, row.steps, PlatformOfTable(i));
      counts.Add(verdict);
      found_.cross_all.Add(verdict);
    }
  }

  PlanVerification found_;
  std::map<std::string, RowVerdict> known_;
};

std::string CountsToText(const VerdictCounts& counts) {
  std::string text;
  for (const RowVerdict verdict :
       {RowVerdict::kOk, RowVerdict::kLoss, RowVerdict::kOrder}) {
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    model::RowVerdictName(verdict), " ", counts.of(verdict));
  }
  const uint64_t endless = counts.of(RowVerdict::kEndless);
  if (endless != 0) absl::StrAppend(&text, ", ENDLESS ", endless);
  return text;
}

void AppendList(const std::vector<std::string>& lines, std::string* text) {
  for (const std::string& line : lines) {
    absl::StrAppend(text, "  ", line, "\n");
  }
}

std::string WeakeningsToText(const PlanVerification& found) {
  constexpr const char* kNames[] = {"dropped", "swapped", "weaker"};
  VerdictCounts all;
  for (const VerdictCounts& counts : found.weakenings) {
    for (size_t i = 0; i < all.by_verdict.size(); ++i) {
      all.by_verdict[i] += counts.by_verdict[i];
    }
  }
  const uint64_t endless = all.of(RowVerdict::kEndless);
  const uint64_t harmless = all.of(RowVerdict::kOk);
  std::string text =
      absl::StrCat("weakenings caught: ", all.all() - endless - harmless,
                   " of ", all.all() - endless, "\n");
  for (size_t i = 0; i < found.weakenings.size(); ++i) {
    absl::StrAppend(&text, "  ", kNames[i], ": ",
                    CountsToText(found.weakenings[i]), "\n");
  }
  absl::StrAppend(&text, "  ENDLESS, not counted: ", endless,
                  " that wait for something that only a later step causes, and "
                  "so never report the update as persistent\n");
  if (harmless != 0) absl::StrAppend(&text, "not caught:\n");
  AppendList(found.harmless_weakenings, &text);
  return text;
}

std::string VariantsToText(const PlanVerification& found) {
  constexpr const char* kDomains[] = {"dmp", "mhp", "wsp"};
  std::string text = absl::StrCat(
      "variant iwarp, the tables' rows: ", CountsToText(found.on_iwarp), "\n");
  for (size_t i = 0; i < found.on_iwarp_by_domain.size(); ++i) {
    absl::StrAppend(&text, "  ", kDomains[i], ": ",
                    CountsToText(found.on_iwarp_by_domain[i]), "\n");
  }
  absl::StrAppend(&text, "variant iwarp, what is planned for it: ",
                  CountsToText(found.planned_for_iwarp), "\n",
                  "variant tcp, what is planned for it: ",
                  CountsToText(found.planned_for_tcp), "\n",
                  "variant without atomic WRITE, what is planned for it: ",
                  CountsToText(found.planned_without_atomic_write), "\n",
                  "variant relaxed ordering, the tables' rows: ",
                  CountsToText(found.with_relaxed_ordering), "\n");
  AppendList(found.broken_by_relaxed_ordering, &text);
  return text;
}

std::string CrossToText(const PlanVerification& found) {
  std::string text =
      absl::StrCat("cross table, each row on the 11 other platforms: ",
                   CountsToText(found.cross_all), "\n");
  for (size_t i = 0; i < found.table.size(); ++i) {
    absl::StrAppendFormat(&text, "  %-34s %s\n", KeyOf(found.table[i]),
                          CountsToText(found.cross[i]));
  }
  return text;
}

bool AreAllOk(const VerdictCounts& counts) {
  return counts.of(RowVerdict::kOk) == counts.all();
}

}  // namespace

uint64_t VerdictCounts::all() const {
  return std::accumulate(by_verdict.begin(), by_verdict.end(), uint64_t{0});
}

PlanVerification VerifyTable() { return Verifier().Run(); }

std::string VerificationToText(const PlanVerification& found) {
  std::string text =
      absl::StrCat("rows sufficient: ", found.rows.of(RowVerdict::kOk), " of ",
                   found.rows.all(), "\n");
  AppendList(found.insufficient_rows, &text);
  absl::StrAppend(&text, WeakeningsToText(found), VariantsToText(found),
                  CrossToText(found), "explored: ", found.explorations,
                  " programs, ", found.states, " states, ", found.images,
                  " images after a power cut\n");
  return text;
}

absl::Status VerdictOf(const PlanVerification& found) {
  const bool plans_are_ok = AreAllOk(found.planned_for_iwarp) &&
                            AreAllOk(found.planned_for_tcp) &&
                            AreAllOk(found.planned_without_atomic_write);
  if (AreAllOk(found.rows) && plans_are_ok &&
      found.harmless_weakenings.empty()) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "plan: on the model ", found.insufficient_rows.size(),
      " rows are insufficient, ", found.harmless_weakenings.size(),
      " weakenings are sufficient, and the plans for other adapters are ",
      plans_are_ok ? "" : "in", "sufficient"));
}

}  // namespace alpheus::cli
