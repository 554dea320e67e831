// SPDX-License-Identifier: Apache-2.0
// alpheusd: runs one node of a cluster: keeps its replicas and serves them to
// primaries. See api/node/node.h; tools/samples/alpheusd.toml has every option.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/admin/administrator.h"
#include "api/grpc/server/log_server.h"
#include "api/metrics/collect/held_logs.h"
#include "api/metrics/collect/node_collector.h"
#include "api/metrics/server/metrics_server.h"
#include "api/node/node.h"
#include "api/service/served/served_logs.h"
#include "log/base/status_macros.h"
#include "log/base/wall_clock.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/configuration.h"
#include "tools/cli/io/exit_status.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/io/standing_options.h"
#include "tools/daemon/message_writer.h"
#include "tools/daemon/signals.h"
#include "tools/daemon/standing_logs.h"

namespace alpheus::daemon {
namespace {

// A scrape waits so long for the node's thread, which answers between two turns
// of its loop; Prometheus waits for ten seconds.
constexpr int64_t kObservePatienceMs = 1'000;

struct Arguments {
  NodeOptions node;
  std::vector<std::string> stand;
  rpc::LogServerOptions serve;
  metrics::MetricsServerOptions metrics;
  cli::StandingArguments standing;
  std::string message_format = "text";
  bool check_config = false;
};

StandingOptions StandingOptionsOf(const Arguments& arguments) {
  StandingOptions options;
  options.logs = arguments.stand;
  options.cluster_file = arguments.node.cluster_file;
  options.node = arguments.node.node;
  options.directory = arguments.node.directory;
  cli::SetStanding(arguments.standing, &options.candidate);
  options.candidate.say = arguments.node.say;
  return options;
}

// Adds limits on connections without a promise.
void AddPlaces(CLI::App* app, NodeOptions* options) {
  constexpr uint64_t kPlacesMax = 65'536;
  const auto add = [&](const char* name, uint64_t* places, const char* what) {
    cli::AddOption(app, name, places, what)
        .Decimal()
        .Range(uint64_t{1}, kPlacesMax)
        .ShowDefault();
  };
  add("--unopened-max", &options->unopened_max,
      "How many connections may be open without a hello; the oldest is closed "
      "for a new one");
  add("--unproved-max", &options->unproved_max,
      "How many connections may be open without a proof of the key; the oldest "
      "is closed for a new one");
  add("--waiting-max", &options->waiting_max,
      "How many connections may wait, of each of three kinds: those with a "
      "request, those that read a replica, and those that have asked for "
      "nothing yet; the one that was silent for longest is closed for a new "
      "one");
  add("--followers-max", &options->followers_max,
      "How many readers may follow logs of this node (alpheus tail --follow); "
      "more are refused");
}

// Adds how clients are served. Requires: --stand was added.
void AddServing(CLI::App* app, rpc::LogServerOptions* serve) {
  const cli::Option listen = cli::AddOption(
      app, "--serve", &serve->listen,
      "Where to listen for clients that append to the logs for which "
      "the node stands, and read them (gRPC). An address that other machines "
      "reach needs TLS, and tokens or certificates of clients. Default: "
      "nowhere");
  listen.Needs(cli::FindOption(app, "--stand"));
  const auto add = [&](const char* name, std::string* file, const char* what) {
    cli::AddOption(app, name, file, what).Needs(listen);
  };
  add("--tls-certificate", &serve->tls_certificate,
      "File with the certificate that clients see, and those of its issuers, "
      "as PEM. Default: no TLS");
  add("--tls-key", &serve->tls_key,
      "File with the certificate's key, as PEM, with mode 600");
  add("--tls-client-ca", &serve->tls_client_ca,
      "File with authorities, as PEM: clients must show a certificate that one "
      "of them has signed. Default: they need none");
  add("--tokens", &serve->tokens,
      "File with what each token may do (alpheus token new), with mode 600. "
      "Default: clients need no token");
  constexpr uint64_t kLimitMax = 1'000'000;
  const auto add_limit = [&](const char* name, uint64_t* limit,
                             const char* what) {
    cli::AddOption(app, name, limit, what)
        .Decimal()
        .Range(uint64_t{1}, kLimitMax)
        .ShowDefault();
  };
  rpc::ConnectionLimitOptions* const connections = &serve->connections;
  add_limit("--connections-max", &connections->open_max,
            "How many connections of clients may be open; more are closed");
  add_limit("--connections-of-host-max", &connections->of_host_max,
            "How many of them one host may have, other than this one");
  add_limit("--connections-per-second", &connections->per_second,
            "How many may come in a second; the others wait");
}

void AddMetrics(CLI::App* app, metrics::MetricsServerOptions* metrics) {
  const cli::Option listen = cli::AddOption(
      app, "--metrics", &metrics->listen,
      "Where to listen for Prometheus, which scrapes /metrics there. Metrics "
      "have neither TLS nor tokens. Default: nowhere");
  cli::AddFlag(app, "--metrics-public", &metrics->is_public,
               "Other machines may reach the address of --metrics: anybody "
               "there may read the metrics")
      .Needs(listen);
}

void AddOptions(cli::Parser* parser, Arguments* arguments) {
  NodeOptions* const options = &arguments->node;
  // Unknown keys are refused, as in the cluster file, since they may be typing
  // errors.
  parser->AddConfigOption("--config", "File with these options, as TOML");
  CLI::App* const app = parser->app();
  cli::AddFlag(
      app, "--check-config", &arguments->check_config,
      "Only check whether the node could start with these options and files");
  cli::AddOption(
      app, "--cluster", &options->cluster_file,
      "Cluster file: the members that keep the logs, and their addresses")
      .Required();
  cli::AddOption(app, "--node", &options->node, "The member that this node is")
      .Required()
      .Decimal()
      .Range(uint64_t{1}, uint64_t{65'535});
  cli::AddOption(
      app, "--directory", &options->directory,
      "Directory of the replicas: a file <log name>.alpheus for each log")
      .Required();
  cli::AddOption(app, "--listen", &options->listen,
                 "Where to listen; default: the member's address in the "
                 "cluster file");
  cli::AddOptionFunction(
      app, "--platform",
      [options](const std::string& text) -> absl::Status {
        ALPHEUS_ASSIGN_OR_RETURN(options->platform,
                                 replication::ParsePlatform(text));
        return absl::OkStatus();
      },
      "Traits that decide what keeps records when the power fails: words "
      "separated by commas; see the sample configuration")
      .ShowDefault(replication::PlatformToString(options->platform));
  cli::AddOption(app, "--stand", &arguments->stand,
                 "Log for which the node itself stands for primary: it opens "
                 "the log when it is elected, and holds it; may be given "
                 "several times");
  cli::AddStandingOptions(app, &arguments->standing);
  AddServing(app, &arguments->serve);
  AddMetrics(app, &arguments->metrics);
  AddPlaces(app, options);
  cli::AddOption(app, "--messages", &arguments->message_format,
                 "How messages are written to standard error: text; or json, "
                 "an object a line, for programs that collect them")
      .OneOf({"text", "json"})
      .ShowDefault();
  cli::AddOption(app, "--threads", &options->threads,
                 "Threads over which the node spreads its logs. 0: one for "
                 "each core that it may use, at most 8. With RDMA there is one "
                 "in any case")
      .Decimal()
      .Range(uint32_t{0}, kNodeThreadsMax)
      .ShowDefault();
  cli::AddOption(app, "--yield-turns", &options->yield_turns,
                 "How many turns after the last activity go without sleep; "
                 "each yields the core. 0: sleep at once")
      .Decimal()
      .ShowDefault();
  cli::AddOption(app, "--scrub-bytes-per-second",
                 &options->scrub_bytes_per_second,
                 "How many bytes of its replicas the node verifies per second "
                 "by itself. 0: none, except on request (alpheus scrub)")
      .Decimal()
      .ShowDefault();
  cli::AddOption(
      app, "--scrub-interval-seconds", &options->scrub_interval_seconds,
      "Seconds from the end of one such pass over a log to the next one")
      .Decimal()
      .ShowDefault();
}

// Raises the limit to what the system allows: each connection and each replica
// is one file.
void RaiseFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);  // else with what there is
}

constexpr char kDescription[] =
    "A node of a replicated log: keeps and serves replicas.";

// Tells clients where they reach the other nodes, by the cluster file as it is
// now.
absl::Status SetAddresses(const Arguments& arguments,
                          service::ServedLogs* served) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const quorum::ClusterConfiguration cluster,
      quorum::LoadClusterFile(arguments.node.cluster_file));
  std::map<uint64_t, std::string> addresses;
  for (const quorum::ClusterMember& member : cluster.members) {
    if (!member.clients) continue;
    addresses.emplace(member.node.value, member.clients->ToString());
  }
  served->SetAddresses(std::move(addresses));
  return absl::OkStatus();
}

// The options as they are now, of the same command line. A cluster file that is
// of no use does not keep a token from being revoked.
void Reload(Node* node, service::ServedLogs* served, rpc::LogServer* server,
            const Arguments& before, int argc, char** argv) {
  const auto& say = before.node.say;
  cli::Parser parser(kDescription, "alpheusd");
  Arguments arguments;
  AddOptions(&parser, &arguments);
  std::ostringstream said;
  if (parser.Parse(std::vector<std::string>(argv + 1, argv + argc), said,
                   said)) {
    say(absl::StrCat("nothing is reloaded: ", said.str()));
    return;
  }
  arguments.node.say = say;
  bool serves_anew = false;
  if (server != nullptr) {
    const absl::Status serves = server->Reload();
    serves_anew = serves.ok();
    say(serves.ok() ? "reload: certificate and tokens were read again"
                    : absl::StrCat("reload: ", serves.message()));
  }
  if (arguments.serve != before.serve) {
    say("reload: where and how clients are served changes only after a "
        "restart; the files of before are read");
  }
  if (arguments.metrics != before.metrics) {
    say("reload: where metrics are shown changes only after a restart");
  }
  absl::Status reloaded = node->Reload(arguments.node);
  if (reloaded.ok()) reloaded = SetAddresses(arguments, served);
  if (!reloaded.ok()) {
    say(absl::StrCat("nothing is reloaded",
                     serves_anew ? " but certificate and tokens: " : ": ",
                     reloaded.message()));
  }
}

// Checks what the node does beside keeping replicas.
absl::Status CheckMore(const Arguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(StandingLogs::Check(StandingOptionsOf(arguments)));
  if (!arguments.serve.listen.empty()) {
    ALPHEUS_RETURN_IF_ERROR(rpc::LogServer::Check(arguments.serve));
  }
  if (arguments.metrics.listen.empty()) return absl::OkStatus();
  return metrics::MetricsServer::Check(arguments.metrics);
}

absl::StatusOr<std::string> Check(const Arguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(std::string node, Node::Check(arguments.node));
  ALPHEUS_RETURN_IF_ERROR(CheckMore(arguments));
  return node;
}

cli::ExitStatus CheckConfig(const Arguments& arguments) {
  const absl::StatusOr<std::string> checked = Check(arguments);
  if (!checked.ok()) {
    std::fprintf(stderr, "alpheusd: %s\n",
                 std::string(checked.status().message()).c_str());
    return cli::ExitStatusOf(checked.status().code());
  }
  std::printf("%s: the configuration is good\n", checked->c_str());
  return std::fflush(stdout) == 0 ? cli::ExitStatus::kGood
                                  : cli::ExitStatus::kFailed;
}

// Listens for clients, if the node is to.
absl::StatusOr<std::unique_ptr<rpc::LogServer>> Serve(
    const Arguments& arguments, service::ServedLogs* served,
    Administrator* administrator) {
  if (arguments.serve.listen.empty()) return nullptr;
  ALPHEUS_RETURN_IF_ERROR(SetAddresses(arguments, served));
  return rpc::LogServer::Start(arguments.serve, *served, arguments.node.say,
                               WallClock::Real(), administrator);
}

// Servers beside the node, and the logs that they serve. The last one ends
// first.
struct Servers {
  explicit Servers(const Arguments& arguments)
      : start_time_s(WallClock::Real().NowSeconds()),
        served(arguments.stand),
        held(arguments.stand),
        administrator(arguments.node.cluster_file, arguments.node.node) {}

  const int64_t start_time_s;
  service::ServedLogs served;
  metrics::HeldLogs held;
  ClusterAdministrator administrator;
  std::unique_ptr<rpc::LogServer> clients;
  std::optional<metrics::NodeCollector> collector;
  std::unique_ptr<metrics::MetricsServer> metrics;
};

// Shows metrics, if the node is to. Requires: clients are served, if they are
// to be.
absl::Status ShowMetrics(const Arguments& arguments, Node& node,
                         Servers* servers) {
  if (arguments.metrics.listen.empty()) return absl::OkStatus();
  metrics::NodeSources sources;
  sources.node = arguments.node.node;
  sources.start_time_s = servers->start_time_s;
  sources.held = &servers->held;
  if (servers->clients != nullptr) {
    sources.served = &servers->served;
    sources.calls = &servers->clients->counts();
    sources.connections = [servers] { return servers->clients->connections(); };
  }
  sources.observe = [&node] { return node.Observe(kObservePatienceMs); };
  servers->collector.emplace(std::move(sources));
  ALPHEUS_ASSIGN_OR_RETURN(
      servers->metrics,
      metrics::MetricsServer::Start(arguments.metrics, [servers] {
        return servers->collector->Collect();
      }));
  arguments.node.say(absl::StrCat("node ", arguments.node.node,
                                  " shows metrics on ",
                                  servers->metrics->address()));
  return absl::OkStatus();
}

// Begins to serve clients and Prometheus.
absl::Status StartServers(const Arguments& arguments, Node& node,
                          Servers* servers) {
  ALPHEUS_ASSIGN_OR_RETURN(servers->clients, Serve(arguments, &servers->served,
                                                   &servers->administrator));
  return ShowMetrics(arguments, node, servers);
}

cli::ExitStatus Run(const Arguments& arguments, Signals* signals, int argc,
                    char** argv) {
  const NodeOptions& options = arguments.node;
  const auto say = options.say;
  const auto fail = [&](const absl::Status& status) {
    say(std::string(status.message()));
    return cli::ExitStatusOf(status.code());
  };
  // Before the node listens: nobody shall see a node that ends at once.
  const absl::Status may_start = CheckMore(arguments);
  if (!may_start.ok()) return fail(may_start);
  const absl::StatusOr<std::unique_ptr<Node>> node = Node::Start(options);
  if (!node.ok()) return fail(node.status());
  Servers servers(arguments);
  const absl::Status serves = StartServers(arguments, **node, &servers);
  if (!serves.ok()) return fail(serves);
  StandingLogs standing;
  const absl::Status waits = signals->Start(
      [&] {
        standing.Stop();
        (*node)->Stop();
      },
      [&] {
        Reload(node->get(), &servers.served, servers.clients.get(), arguments,
               argc, argv);
      });
  if (!waits.ok()) return fail(waits);
  say(absl::StrCat("node ", options.node, " listens on ", (*node)->address()));
  StandingOptions stands_for = StandingOptionsOf(arguments);
  stands_for.held = &servers.held;
  if (servers.clients != nullptr) {
    say(absl::StrCat("node ", options.node, " serves clients on ",
                     servers.clients->address()));
    stands_for.served = &servers.served;
  }
  const absl::Status stands = standing.Start(stands_for);
  if (!stands.ok()) {
    signals->Stop();
    return fail(stands);
  }
  const absl::Status ran = (*node)->Run();
  signals->Stop();
  if (!ran.ok()) return fail(ran);
  say(absl::StrCat("node ", options.node, " ends"));
  return cli::ExitStatus::kGood;
}

cli::ExitStatus Main(int argc, char** argv) {
  cli::GuardStandardStreams();
  cli::Parser parser(kDescription, "alpheusd");
  Arguments arguments;
  AddOptions(&parser, &arguments);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  if (arguments.check_config) return CheckConfig(arguments);
  Signals signals;
  RaiseFileLimit();
  MessageWriter messages(STDERR_FILENO, "alpheusd",
                         arguments.message_format == "json"
                             ? MessageFormat::kJson
                             : MessageFormat::kText,
                         arguments.node.node);
  arguments.node.say = [&](const std::string& sentence) {
    messages.Write(sentence);
  };
  return Run(arguments, &signals, argc, argv);
}

}  // namespace
}  // namespace alpheus::daemon

int main(int argc, char** argv) {
  return static_cast<int>(alpheus::daemon::Main(argc, argv));
}
