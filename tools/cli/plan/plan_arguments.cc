// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/plan/plan_arguments.h"

#include "tools/cli/io/parser.h"

namespace alpheus::cli {

using replication::Platform;
using replication::Transport;

namespace {

// The options' words, which the parser has checked.
replication::PersistenceDomain DomainNamed(const std::string& word) {
  if (word == "wsp") return replication::PersistenceDomain::kSystem;
  return word == "mhp" ? replication::PersistenceDomain::kHierarchy
                       : replication::PersistenceDomain::kMemory;
}

Transport TransportNamed(const std::string& word) {
  if (word == "tcp") return Transport::kTcp;
  return word == "iwarp" ? Transport::kIwarp : Transport::kInfiniBand;
}

replication::ReceiveBuffers BuffersNamed(const std::string& word) {
  return word == "pm" ? replication::ReceiveBuffers::kPmem
                      : replication::ReceiveBuffers::kDram;
}

}  // namespace

Platform PlanArguments::platform() const {
  Platform platform;
  platform.domain = DomainNamed(domain);
  platform.ddio = ddio != "off";
  platform.receive_buffers = BuffersNamed(rqwrb);
  return WithAdapter(platform);
}

Platform PlanArguments::WithAdapter(Platform configuration) const {
  configuration.transport = TransportNamed(transport);
  configuration.atomic_write = !no_atomic_write;
  configuration.native_flush = !no_native_flush;
  return configuration;
}

bool PlanArguments::Wants(const Platform& configuration) const {
  const Platform named = platform();
  return (domain.empty() || configuration.domain == named.domain) &&
         (ddio.empty() || configuration.ddio == named.ddio) &&
         (rqwrb.empty() ||
          configuration.receive_buffers == named.receive_buffers);
}

void AddPlanOptions(CLI::App* command, PlanArguments* arguments) {
  AddOption(command, "--domain", &arguments->domain,
            "Parts that survive a power failure: memory (dmp), also the caches "
            "(mhp), also the adapter (wsp)")
      .OneOf({"dmp", "mhp", "wsp"});
  AddOption(command, "--ddio", &arguments->ddio,
            "Whether bytes that arrive go into the processor's cache")
      .OneOf({"on", "off"});
  AddOption(command, "--rqwrb", &arguments->rqwrb,
            "Where the receive buffers lie")
      .OneOf({"dram", "pm"});
  AddOption(command, "--transport", &arguments->transport,
            "How hosts are connected; the tables are for infiniband "
            "and roce (default)")
      .OneOf({"infiniband", "roce", "iwarp", "tcp"});
  AddFlag(command, "--no-atomic-write", &arguments->no_atomic_write,
          "The adapter has no atomic WRITE");
  AddFlag(command, "--no-native-flush", &arguments->no_native_flush,
          "The adapter has no FLUSH; a READ takes its place");
  AddFlag(command, "--all", &arguments->all, "The 72 rows of the tables");
  AddFlag(
      command, "--cheapest", &arguments->cheapest,
      "For each platform, or those that are given, the operation with the "
      "fewest round trips, then the fewest steps of the responder's program");
  AddOption(command, "--flush-cost", &arguments->costs.flush,
            "Measured cost of a round trip of FLUSH, where a completion of a "
            "WRITE costs 1 (--cheapest)")
      .Positive();
  AddOption(command, "--exchange-cost", &arguments->costs.exchange,
            "The same for a message and its ack (--cheapest)")
      .Positive();
  AddFlag(command, "--verify", &arguments->verify,
          "Run all rows, all their weakenings, and each row on each other "
          "platform on the model, with a power cut in every state");
  AddOption(command, "--format", &arguments->format, "How to print")
      .OneOf({"text", "csv"});
}

absl::Status CheckPlanArguments(const PlanArguments& arguments) {
  const int asked = static_cast<int>(arguments.all) +
                    static_cast<int>(arguments.cheapest) +
                    static_cast<int>(arguments.verify);
  if (asked > 1) {
    return absl::InvalidArgumentError(
        "plan: --all, --cheapest and --verify exclude each other; give one");
  }
  if (asked == 0 && !arguments.names_platform()) {
    return absl::InvalidArgumentError(
        "plan: no platform is given. Give --domain, --ddio and --rqwrb (one "
        "that is left out has its weakest value), or --all, --cheapest or "
        "--verify");
  }
  const bool has_adapter =
      TransportNamed(arguments.transport) != Transport::kInfiniBand ||
      arguments.no_atomic_write || arguments.no_native_flush;
  if ((arguments.all || arguments.verify) &&
      (arguments.names_platform() || has_adapter)) {
    return absl::InvalidArgumentError(
        "plan: --all and --verify cover all platforms of the tables; leave out "
        "--domain, --ddio, --rqwrb, --transport, --no-atomic-write and "
        "--no-native-flush");
  }
  if (arguments.verify && arguments.format == "csv") {
    return absl::InvalidArgumentError(
        "plan: --verify prints text; csv is for --all, --cheapest and one "
        "platform");
  }
  const replication::RoundTripCosts defaults;
  const bool has_costs = arguments.costs.flush != defaults.flush ||
                         arguments.costs.exchange != defaults.exchange;
  if (has_costs && !arguments.cheapest) {
    return absl::InvalidArgumentError(
        "plan: --flush-cost and --exchange-cost are for --cheapest");
  }
  return absl::OkStatus();
}

}  // namespace alpheus::cli
