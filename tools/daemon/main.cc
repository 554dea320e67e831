// SPDX-License-Identifier: Apache-2.0
// alpheusd: runs one node of a cluster: keeps its replicas and serves them to
// whoever is primary. See api/node/node.h; tools/samples/alpheusd.toml has
// every option.
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "api/node/node.h"
#include "log/base/status_macros.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/parser.h"
#include "tools/cli/standard_streams.h"

namespace alpheus {
namespace {

void Tell(const std::string& sentence) {
  std::fprintf(stderr, "alpheusd: %s\n", sentence.c_str());
}

// Of connections without a promise.
void AddPlaces(CLI::App* app, NodeOptions* options) {
  constexpr uint64_t kPlacesMax = 65'536;
  const auto add = [&](const char* name, uint64_t* places, const char* what) {
    cli::AddOption(app, name, places, what)
        .Decimal()
        .Range(uint64_t{1}, kPlacesMax)
        .ShowDefault();
  };
  add("--silent-max", &options->silent_max,
      "Connections that have not said hello; the oldest makes room");
  add("--unproved-max", &options->unproved_max,
      "Connections that have not proved the key; the oldest makes room");
  add("--waiting-max", &options->waiting_max,
      "Connections that wait, of each of three kinds: those that ask for "
      "something, that look at a replica, and that have asked for nothing "
      "yet; who was silent for longest makes room");
  add("--followers-max", &options->followers_max,
      "Readers that follow logs of this node (alpheus tail --follow); more "
      "are refused");
}

void AddOptions(cli::Parser* parser, NodeOptions* options) {
  // What a typing error could change is refused, as in the cluster file.
  parser->AddConfigOption("--config", "File with these options, as TOML");
  CLI::App* const app = parser->app();
  cli::AddOption(app, "--cluster", &options->cluster_file,
                 "Cluster file: who keeps the logs, and where")
      .Required();
  cli::AddOption(app, "--node", &options->node, "The member that this node is")
      .Required()
      .Decimal()
      .Range(uint64_t{1}, uint64_t{65'535});
  cli::AddOption(app, "--directory", &options->directory,
                 "Directory of the replicas, <log name>.alpheus each")
      .Required();
  cli::AddOption(app, "--listen", &options->listen,
                 "Where to listen; default: the member's address in the "
                 "cluster file");
  cli::AddOptionFunction(
      app, "--platform",
      [options](const std::string& text) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(options->platform, ParsePlatform(text));
        return absl::OkStatus();
      },
      "What keeps records when the power goes, as words with commas between "
      "them; see the sample configuration")
      .ShowDefault(PlatformToString(options->platform));
  AddPlaces(app, options);
  cli::AddOption(app, "--yield-turns", &options->yield_turns,
                 "Turns without sleeping after the last activity; each "
                 "yields the core. 0: sleeps at once")
      .Decimal()
      .ShowDefault();
  cli::AddOption(app, "--scrub-bytes-per-second",
                 &options->scrub_bytes_per_second,
                 "How much of its replicas the node verifies by itself. 0: "
                 "nothing, unless it is asked to (alpheus scrub)")
      .Decimal()
      .ShowDefault();
  cli::AddOption(app, "--scrub-interval-seconds",
                 &options->scrub_interval_seconds,
                 "From the end of one such pass over a log to the next one")
      .Decimal()
      .ShowDefault();
}

// SIGTERM and SIGINT end the node; a thread waits for them, so that nothing
// runs inside a signal handler.
class SignalWaiter {
 public:
  // Before any other thread starts: they inherit what is blocked.
  SignalWaiter() {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
      sigaddset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~SignalWaiter() { Stop(); }

  // When it returns the node is not used any more.
  void Stop() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

  void Start(Node* node) {
    thread_ = std::thread([this, node] {
      int signal = 0;
      sigwait(&signals_, &signal);
      node->Stop();
    });
  }

 private:
  sigset_t signals_;
  std::thread thread_;
};

cli::ExitStatus Fail(const absl::Status& status) {
  Tell(std::string(status.message()));
  return cli::ExitStatusOf(status.code());
}

cli::ExitStatus Main(int argc, char** argv) {
  cli::GuardStandardStreams();
  cli::Parser parser("A node of a replicated log: keeps and serves replicas.",
                     "alpheusd");
  NodeOptions options;
  AddOptions(&parser, &options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  options.tell = Tell;
  SignalWaiter signals;
  const absl::StatusOr<std::unique_ptr<Node>> node = Node::Start(options);
  if (!node.ok()) return Fail(node.status());
  signals.Start(node->get());
  Tell("node " + std::to_string(options.node) + " listens on " +
       (*node)->address());
  (*node)->Run();
  signals.Stop();
  Tell("node " + std::to_string(options.node) + " ends");
  return cli::ExitStatus::kGood;
}

}  // namespace
}  // namespace alpheus

int main(int argc, char** argv) {
  return static_cast<int>(alpheus::Main(argc, argv));
}
