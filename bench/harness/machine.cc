// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
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

absl::StatusOr<std::vector<int>> AllowedCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return SystemError("sched_getaffinity");
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

uint64_t MemoryBytes() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
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

absl::StatusOr<Machine> DescribeMachine() {
  Machine machine;
  ALPHEUS_ASSIGN_OR_RETURN(machine.cores, AllowedCores());
  machine.cpu_model = CpuModel();
  machine.build_type = ALPHEUS_BUILD_TYPE;
  machine.compiler = ALPHEUS_COMPILER;
  machine.memory_bytes = MemoryBytes();
  if (getloadavg(&machine.load_average, 1) != 1) machine.load_average = -1;
  struct utsname name{};
  if (uname(&name) != 0) return SystemError("uname");
  machine.kernel = absl::StrCat(name.sysname, " ", name.release);
  return machine;
}

absl::Status PinTo(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return SystemError("sched_setaffinity");
  }
  return absl::OkStatus();
}
absl::Status PinTo(int core) { return PinTo(std::span(&core, 1)); }

int CoreFor(const std::vector<int>& cores, int worker) {
  return cores[cores.size() - 1 - static_cast<size_t>(worker) % cores.size()];
}

}  // namespace alpheus::bench
