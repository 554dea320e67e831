// SPDX-License-Identifier: Apache-2.0
#include "bench/local/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

constexpr const char* kForceVariable = "PMEM_IS_PMEM_FORCE";

absl::Status SystemError(const char* call) {
  return absl::UnavailableError(
      absl::StrCat(call, " failed: ", std::strerror(errno)));
}

std::string CpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

absl::StatusOr<int> PinToLastCpu() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return SystemError("sched_getaffinity");
  }
  int cpu = CPU_SETSIZE - 1;
  while (cpu > 0 && !CPU_ISSET(cpu, &allowed)) --cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) {
    return SystemError("sched_setaffinity");
  }
  return cpu;
}

}  // namespace

absl::Status RestartWithPmemForced(char** argv) {
  const char* value = std::getenv(kForceVariable);
  if (value != nullptr && std::string_view(value) == "1") {
    return absl::OkStatus();
  }
  if (setenv(kForceVariable, "1", /*overwrite=*/1) != 0) {
    return SystemError("setenv");
  }
  execv("/proc/self/exe", argv);
  return SystemError("execv(/proc/self/exe)");
}

absl::StatusOr<Machine> PinAndDescribe() {
  Machine machine;
  ALPHEUS_ASSIGN_OR_RETURN(machine.cpu, PinToLastCpu());
  machine.cpu_model = CpuModel();
  machine.build_type = ALPHEUS_BUILD_TYPE;
  struct utsname name{};
  if (uname(&name) != 0) return SystemError("uname");
  machine.kernel = absl::StrCat(name.sysname, " ", name.release);
  return machine;
}

}  // namespace alpheus::bench
