// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/members/cluster_key.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {
namespace {

absl::Status RunKeyNew(const std::string& path) {
  EntropyRandom entropy;
  ALPHEUS_RETURN_IF_ERROR(quorum::MakeClusterKeyFile(path, entropy));
  std::fprintf(stderr,
               "alpheus: %s: a new key. Copy it to all nodes and primaries "
               "with mode 600, and name it in the cluster file (key_file)\n",
               path.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddKeyCommand(CLI::App* app, Command* chosen) {
  CLI::App* command =
      AddSubcommand(app, "key",
                    "Make the secret of a cluster\n\n"
                    "Nodes and primaries recognise each other by it.\n");
  RequireSubcommand(command);
  auto path = std::make_shared<std::string>();
  CLI::App* fresh = AddCommand(
      command, "new",
      {.purpose = "Make a random key",
       .about = "Writes it to a new file that only its owner can read. Refuses "
                "to overwrite a file.\n"
                "A cluster has one key. Its cluster file names it (key_file), "
                "and all nodes and primaries have a copy.",
       .failed = "anything else: the file exists, no such folder"});
  AddOption(fresh, "FILE", path.get(), "Where to write it").Required();
  OnChosen(fresh,
           [path, chosen] { *chosen = [path] { return RunKeyNew(*path); }; });
}

}  // namespace alpheus::cli
