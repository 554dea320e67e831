// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/large_pages.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

absl::Status SystemError(const std::string& call) {
  return absl::UnavailableError(
      absl::StrCat(call, " failed: ", std::strerror(errno)));
}

absl::Status WriteTo(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? absl::OkStatus() : SystemError(absl::StrCat("writing ", path));
}

// Gives this process a mount name space, and a user name space in which it may
// mount. Users stay who they are.
absl::Status EnterNameSpaces() {
  if (geteuid() == 0) {
    return unshare(CLONE_NEWNS) == 0 ? absl::OkStatus()
                                     : SystemError("unshare(CLONE_NEWNS)");
  }
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return SystemError("unshare(CLONE_NEWUSER | CLONE_NEWNS)");
  }
  ALPHEUS_RETURN_IF_ERROR(WriteTo("/proc/self/setgroups", "deny"));
  ALPHEUS_RETURN_IF_ERROR(
      WriteTo("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")));
  return WriteTo("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1"));
}

}  // namespace

absl::Status MountLargePages(const std::string& folder) {
  struct statfs system{};
  if (statfs(folder.c_str(), &system) != 0) {
    return SystemError(absl::StrCat("statfs(", folder, ")"));
  }
  if (system.f_type != TMPFS_MAGIC) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " is on no tmpfs"));
  }
  ALPHEUS_RETURN_IF_ERROR(EnterNameSpaces());
  // The new name space must not pass its mounts on.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return SystemError("mount(/, MS_PRIVATE)");
  }
  if (mount("alpheus", folder.c_str(), "tmpfs", 0, "huge=always") != 0) {
    return SystemError(absl::StrCat("mount(", folder, ", tmpfs, huge=always)"));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
