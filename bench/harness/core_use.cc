// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/core_use.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

constexpr const char* kProcStat = "/proc/stat";

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) / 1e6;
}

absl::StatusOr<double> UsedBy(int who) {
  struct rusage usage{};
  if (getrusage(who, &usage) != 0) {
    return absl::UnavailableError(
        absl::StrCat("getrusage failed: ", std::strerror(errno)));
  }
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

}  // namespace

absl::StatusOr<double> IdleSeconds(std::string_view proc_stat, double ticks) {
  std::istringstream words{std::string(proc_stat)};
  std::string name;
  // cpu USER NICE SYSTEM IDLE IOWAIT ...
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double waiting = 0;
  words >> name >> user >> nice >> system >> idle >> waiting;
  if (!words || name != "cpu") {
    return absl::UnavailableError(
        absl::StrCat(kProcStat, " begins with `", name,
                     "`, not with the times of all cores; expected `cpu` and "
                     "five numbers at least"));
  }
  return (idle + waiting) / ticks;
}

absl::StatusOr<CoreTimes> ReadCoreTimes() {
  CoreTimes times;
  std::ifstream file(kProcStat);
  std::string line;
  std::getline(file, line);
  ALPHEUS_ASSIGN_OR_RETURN(
      times.idle, IdleSeconds(line, static_cast<double>(sysconf(_SC_CLK_TCK))));
  times.passed = static_cast<double>(NowNanos()) / 1e9 *
                 static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  ALPHEUS_ASSIGN_OR_RETURN(const double self, UsedBy(RUSAGE_SELF));
  ALPHEUS_ASSIGN_OR_RETURN(const double children, UsedBy(RUSAGE_CHILDREN));
  times.own = self + children;
  return times;
}

double ShareOfOthers(const CoreTimes& before, const CoreTimes& after) {
  const double passed = after.passed - before.passed;
  if (passed <= 0) return 0;
  const double others =
      passed - (after.idle - before.idle) - (after.own - before.own);
  // The kernel counts in ticks: a little too much or too little.
  return std::clamp(others / passed, 0.0, 1.0);
}

}  // namespace alpheus::bench
