// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/grpc/access/token_file.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {
namespace {

struct TokenArguments {
  std::string name;
  std::vector<std::string> roles;
  std::vector<std::string> logs = {"main"};
  std::string expires;
  rpc::Rates rates;
  std::string file;
};

absl::Status RunTokenNew(const TokenArguments& arguments) {
  EntropyRandom entropy;
  ALPHEUS_ASSIGN_OR_RETURN(
      const rpc::NewToken made,
      rpc::MakeToken(arguments.name, arguments.roles, arguments.logs,
                     arguments.expires, entropy, arguments.rates));
  std::string said =
      "This is its entry in the file of tokens (--tokens of "
      "alpheusd):\n\n" +
      made.entry;
  if (!arguments.file.empty()) {
    ALPHEUS_RETURN_IF_ERROR(rpc::AddToTokenFile(arguments.file, made.entry));
    said = absl::StrCat("Its entry is in ", arguments.file,
                        ". Copy that file to all nodes, and send alpheusd "
                        "SIGHUP\n");
  }
  std::printf("%s\n", made.token.c_str());
  if (std::fflush(stdout) != 0) {
    return absl::UnavailableError(
        "the token can't be printed, so nobody has it: take its entry away");
  }
  std::fprintf(stderr,
               "alpheus: a new token. It is shown this once and stored "
               "nowhere. %s",
               said.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddTokenCommand(CLI::App* app, Command* chosen) {
  CLI::App* command = AddSubcommand(
      app, "token",
      "Make a token for clients of a service\n\n"
      "A program that appends over the network shows it to alpheusd.\n");
  RequireSubcommand(command);
  auto arguments = std::make_shared<TokenArguments>();
  CLI::App* fresh = AddCommand(
      command, "new",
      {.purpose = "Make a random token",
       .about = "Prints it on standard output, this once. Alpheus keeps only "
                "its digest.\n"
                "Without --file the entry for the file of tokens goes to "
                "standard error.",
       .failed = "anything else: another token has the name, no such folder"});
  AddOption(fresh, "NAME", &arguments->name,
            "What people call it: letters, digits, '.', '_', '-' and '@'")
      .Required();
  AddOption(fresh, "--role", &arguments->roles,
            "What it is good for: append, read or admin (clean records, give "
            "orders to the cluster); may be given several times")
      .Required()
      .OneOf({"append", "read", "admin"});
  AddOption(fresh, "--log", &arguments->logs,
            "Log that it is for, or * for all; may be given several times")
      .ShowDefault("main");
  AddOption(fresh, "--expires", &arguments->expires,
            "When it ends, such as 2027-01-31T00:00:00Z. Default: never");
  AddOption(fresh, "--requests-per-second", &arguments->rates.requests,
            "Requests to append that a node takes in a second. Default: any "
            "number");
  AddOption(fresh, "--bytes-per-second", &arguments->rates.bytes,
            "Bytes of their payloads. Default: any number");
  AddOption(fresh, "--file", &arguments->file,
            "File of tokens to which the entry is added; it is made if it is "
            "not there");
  OnChosen(fresh, [arguments, chosen] {
    *chosen = [arguments] { return RunTokenNew(*arguments); };
  });
}

}  // namespace alpheus::cli
