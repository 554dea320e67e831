// SPDX-License-Identifier: Apache-2.0
// `alpheus elect` and `alpheus drain`: who of those that stand is to be primary
// of a cluster's log.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "alpheus/candidate.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

struct ElectionArguments {
  LogSource source;
  uint64_t node = 0;
  uint32_t timeout_s = 10;
};

using Instruct = absl::StatusOr<PrimaryReport> (*)(const ElectOptions&);

absl::Status RunInstruct(const ElectionArguments& arguments,
                         Instruct instruct) {
  ElectOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  options.node = arguments.node;
  options.timeout_ms = arguments.timeout_s * 1000;
  ALPHEUS_ASSIGN_OR_RETURN(const PrimaryReport report, instruct(options));
  return WriteAll(STDOUT_FILENO, absl::StrCat("log ", options.log_name, ": ",
                                              report.ToString(), "\n"));
}

void AddElectionCommand(CLI::App* app, const char* name,
                        const CommandHelp& help, const char* node_meaning,
                        Instruct instruct, Command* chosen) {
  auto arguments = std::make_shared<ElectionArguments>();
  CLI::App* command = AddCommand(app, name, help);
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddOption(command, "NODE", &arguments->node, node_meaning)
      .Required()
      .Decimal()
      .Range(uint64_t{1}, uint64_t{65'535});
  AddOption(command, "--timeout", &arguments->timeout_s,
            "Seconds after which the command gives up")
      .Decimal()
      .Range(1u, 86'400u)
      .ShowDefault();
  OnChosen(command, [arguments, instruct, chosen] {
    *chosen = [arguments, instruct] {
      return Explain(arguments->source, RunInstruct(*arguments, instruct));
    };
  });
}

}  // namespace

void AddElectCommand(CLI::App* app, Command* chosen) {
  AddElectionCommand(
      app, "elect",
      {.purpose = "Make the program that stands at a node primary",
       .about = "The present primary hands the log over first, if it can. One "
                "that does not do so within a second is deposed: appends of it "
                "may then have an unknown outcome.",
       .failed = "anything else: nobody stands at the node",
       .unavailable = "no node can be reached, or the program was not primary "
                      "in time; it may become so yet"},
      "Node whose program is to be primary", Candidate::Elect, chosen);
}

void AddDrainCommand(CLI::App* app, Command* chosen) {
  AddElectionCommand(
      app, "drain",
      {.purpose = "Have the program that stands at a node hand the log over",
       .about = "No record has an unknown outcome. The program stands no more "
                "before it is elected or started again.",
       .failed = "anything else: nobody stands at the node, or nobody else "
                 "stands",
       .unavailable = "no node can be reached, or no other program was primary "
                      "in time; one may become so yet"},
      "Node whose program is to hand over", Candidate::Drain, chosen);
}

}  // namespace alpheus::cli
