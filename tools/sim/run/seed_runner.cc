// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/seed_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "log/base/status_macros.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int kTimesCpu = 10;
constexpr int kPollMillis = 500;
// Bytes kept of the end of a dying run's output.
constexpr size_t kErrorBytesMax = 16 << 10;

// Followed by the texts of the violation.
struct Wire {
  World::Counters counters;
  uint64_t acknowledged = 0;
  int64_t virtual_ns = 0;
  int64_t violated_at_ns = 0;
  uint64_t is_violated = 0;
  uint64_t invariant_bytes = 0;
  uint64_t what_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<Wire>);

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

struct Pipe {
  Fd read;
  Fd write;
};

absl::Status SystemError(const char* call) {
  return absl::UnavailableError(
      absl::StrCat("running seeds: ", call, ": ", std::strerror(errno)));
}

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void WriteWhole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(EXIT_FAILURE);
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// `beyond`: how much more until the kernel loses its patience.
void LimitTo(int resource, rlim_t value, rlim_t beyond) {
  const rlimit limit = {value, value + beyond};
  static_cast<void>(
      setrlimit(static_cast<__rlimit_resource>(resource), &limit));
}

// A run, in the child process.
[[noreturn]] void BeChild(const SeedRunner::Options& options,
                          const RunOptions& run, int result, int error) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(error, STDERR_FILENO);
  LimitTo(RLIMIT_CORE, 0, 0);
  // SIGXCPU first, which tells it apart from other ends.
  LimitTo(RLIMIT_CPU, static_cast<rlim_t>(options.cpu_seconds_max), 10);
  WriteWhole(result, EncodeResult(options.simulation(run)));
  // Destroys nothing.
  _exit(EXIT_SUCCESS);
}

// A run that is in progress.
struct Child {
  RunOptions options;
  pid_t pid = -1;
  int64_t until_ns = 0;
  bool was_too_slow = false;
  Fd result;
  Fd error;
  std::string result_text;
  std::string error_text;

  bool has_ended() const { return !result.is_open() && !error.is_open(); }
};

// One read, which does not wait: poll said so.
void ReadSome(Fd& fd, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) return fd.Close();
  text.append(buffer.data(), static_cast<size_t>(n));
}

absl::StatusOr<Child> StartChild(const SeedRunner::Options& options,
                                 const RunOptions& run, int64_t now) {
  ALPHEUS_ASSIGN_OR_RETURN(Pipe result, MakePipe());
  ALPHEUS_ASSIGN_OR_RETURN(Pipe error, MakePipe());
  const pid_t pid = fork();
  if (pid < 0) return SystemError("fork");
  if (pid == 0) BeChild(options, run, result.write.get(), error.write.get());
  Child child;
  child.options = run;
  child.pid = pid;
  child.until_ns = now + kNanosPerSecond * options.cpu_seconds_max * kTimesCpu;
  child.result = std::move(result.read);
  child.error = std::move(error.read);
  return child;
}

Violation ViolationOf(const Child& child, int wait_status) {
  const absl::string_view said = absl::StripAsciiWhitespace(child.error_text);
  const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  if (signal == SIGXCPU || child.was_too_slow) {
    return {kHung, absl::StrCat("the run takes too long",
                                said.empty() ? "" : "; ", said)};
  }
  if (signal == SIGABRT && absl::StrContains(said, "check failed:")) {
    return {kCheckFailed, std::string(said)};
  }
  return {kCrashed,
          absl::StrCat(signal != 0 ? "signal " : "exit status ",
                       signal != 0 ? signal : WEXITSTATUS(wait_status),
                       said.empty() ? "" : ": ", said)};
}

int64_t NanosOf(const timeval& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_usec * int64_t{1000};
}

// Returns the outcome of a child that has ended.
SeedOutcome Reap(Child& child) {
  int status = 0;
  rusage usage = {};
  while (wait4(child.pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  child.pid = -1;
  SeedOutcome outcome;
  outcome.cpu_ns = NanosOf(usage.ru_utime) + NanosOf(usage.ru_stime);
  const bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::optional<RunResult> result = DecodeResult(child.result_text);
  if (ended_well && result) {
    outcome.result = *std::move(result);
  } else {
    outcome.result.violation = ViolationOf(child, status);
  }
  return outcome;
}

// The running children, which die with this object.
class Children {
 public:
  ~Children() {
    for (Child& child : children_) {
      kill(child.pid, SIGKILL);
      child.result.Close();
      child.error.Close();
      Reap(child);
    }
  }

  size_t count() const { return children_.size(); }
  void Add(Child child) { children_.push_back(std::move(child)); }

  // Waits a while for news.
  void Wait() {
    std::vector<pollfd> fds;
    for (const Child& child : children_) {
      // Closed ones are passed over.
      fds.push_back({child.result.get(), POLLIN, 0});
      fds.push_back({child.error.get(), POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), kPollMillis) <= 0) return;
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (fds[2 * i].revents != 0) ReadSome(child.result, child.result_text);
      if (fds[2 * i + 1].revents == 0) continue;
      ReadSome(child.error, child.error_text);
      const size_t bytes = child.error_text.size();
      if (bytes > kErrorBytesMax) {
        child.error_text.erase(0, bytes - kErrorBytesMax);
      }
    }
  }

  void KillSlowOnes(int64_t now) {
    for (Child& child : children_) {
      if (now < child.until_ns || child.was_too_slow) continue;
      child.was_too_slow = true;
      kill(child.pid, SIGKILL);
    }
  }

  std::optional<Child> TakeEnded() {
    const auto ended = std::ranges::find_if(
        children_, [](const Child& child) { return child.has_ended(); });
    if (ended == children_.end()) return std::nullopt;
    Child child = std::move(*ended);
    children_.erase(ended);
    return child;
  }

 private:
  std::vector<Child> children_;
};

}  // namespace

std::string EncodeResult(const RunResult& result) {
  Wire wire;
  wire.counters = result.counters;
  wire.acknowledged = result.acknowledged;
  wire.virtual_ns = result.virtual_ns;
  std::string texts;
  if (result.violation) {
    wire.is_violated = 1;
    wire.violated_at_ns = result.violation->at_ns;
    wire.invariant_bytes = result.violation->invariant.size();
    wire.what_bytes = result.violation->what.size();
    texts = absl::StrCat(result.violation->invariant, result.violation->what);
  }
  std::string encoded(sizeof(wire), '\0');
  std::memcpy(encoded.data(), &wire, sizeof(wire));
  return encoded + texts;
}

std::optional<RunResult> DecodeResult(std::string_view text) {
  Wire wire;
  if (text.size() < sizeof(wire)) return std::nullopt;
  std::memcpy(&wire, text.data(), sizeof(wire));
  text.remove_prefix(sizeof(wire));
  if (text.size() != wire.invariant_bytes + wire.what_bytes) {
    return std::nullopt;
  }
  RunResult result;
  result.counters = wire.counters;
  result.acknowledged = wire.acknowledged;
  result.virtual_ns = wire.virtual_ns;
  if (wire.is_violated != 0) {
    result.violation = {std::string(text.substr(0, wire.invariant_bytes)),
                        std::string(text.substr(wire.invariant_bytes)),
                        wire.violated_at_ns};
  }
  return result;
}

SeedRunner::SeedRunner(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

absl::Status SeedRunner::RunAll(
    const std::function<std::optional<RunOptions>()>& next,
    const std::function<bool(const RunOptions&, const SeedOutcome&)>& report) {
  Children children;
  bool goes_on = true;
  for (;;) {
    while (goes_on && children.count() < static_cast<size_t>(options_.jobs)) {
      const std::optional<RunOptions> run = next();
      goes_on = run.has_value();
      if (!goes_on) break;
      ALPHEUS_ASSIGN_OR_RETURN(Child child,
                               StartChild(options_, *run, clock_.NowNanos()));
      children.Add(std::move(child));
    }
    if (children.count() == 0) return absl::OkStatus();
    children.Wait();
    children.KillSlowOnes(clock_.NowNanos());
    while (std::optional<Child> child = children.TakeEnded()) {
      const SeedOutcome outcome = Reap(*child);
      goes_on &= report(child->options, outcome);
    }
  }
}

absl::StatusOr<SeedOutcome> SeedRunner::Run(const RunOptions& options) {
  std::optional<RunOptions> left = options;
  SeedOutcome outcome;
  ALPHEUS_RETURN_IF_ERROR(
      RunAll([&] { return std::exchange(left, std::nullopt); },
             [&](const RunOptions& /*options*/, const SeedOutcome& report) {
               outcome = report;
               return true;
             }));
  return outcome;
}

}  // namespace alpheus::sim
