// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "api/store/local/store.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

using store::Condition;
using store::Outcome;
using store::Store;

struct KvArguments {
  LogSource source;
  std::string key;
  std::optional<std::string> value;
  bool if_absent = false;
  std::optional<uint64_t> if_version;
};

// Opens log and store, works, and closes the log in any case.
absl::Status WithStore(const KvArguments& arguments,
                       const std::function<absl::Status(Store& store)>& work) {
  LogOptions options;
  options.path = arguments.source.file;
  if (arguments.source.is_cluster()) {
    options.replication.cluster_file = arguments.source.cluster;
    options.replication.log_name = arguments.source.log;
    options.replication.node = arguments.source.node;
  }
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log, Log::Open(options));
  absl::Status worked;
  {
    absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(*log);
    worked = store.ok() ? work(**store) : store.status();
  }
  const absl::Status closed = log->Close();
  return worked.ok() ? closed : worked;
}

absl::Status NotDone(const KvArguments& arguments, const Outcome& outcome) {
  if (outcome.version == 0) {
    return absl::NotFoundError(
        absl::StrCat(arguments.key, ": no such key. Nothing was changed"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(arguments.key, ": the key has version ", outcome.version,
                   ". Nothing was changed"));
}

Condition ConditionOf(const KvArguments& arguments) {
  if (arguments.if_absent) return {Condition::Kind::kAbsent};
  if (arguments.if_version) {
    return {Condition::Kind::kVersion, *arguments.if_version};
  }
  return {};
}

absl::Status PrintVersion(store::Version version) {
  return WriteAll(STDOUT_FILENO, absl::StrCat(version, "\n"));
}

absl::StatusOr<std::string> ReadValue() {
  Input input(STDIN_FILENO);
  std::string value;
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::string_view some, input.Peek());
    if (some.empty()) return value;
    value += some;
    input.Consume(some.size());
  }
}

absl::Status RunPut(const KvArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string value,
                           arguments.value
                               ? absl::StatusOr<std::string>(*arguments.value)
                               : ReadValue());
  return WithStore(arguments, [&](Store& store) -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(
        const Outcome put,
        store.Put(arguments.key, value, ConditionOf(arguments)));
    if (!put.is_done) return NotDone(arguments, put);
    return PrintVersion(put.version);
  });
}

absl::Status RunGet(const KvArguments& arguments) {
  return WithStore(arguments, [&](Store& store) -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(const std::optional<Store::Value> value,
                             store.Get(arguments.key));
    if (!value) {
      return absl::NotFoundError(absl::StrCat(arguments.key, ": no such key"));
    }
    return WriteAll(STDOUT_FILENO, value->bytes);
  });
}

absl::Status RunDelete(const KvArguments& arguments) {
  return WithStore(arguments, [&](Store& store) -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(
        const Outcome deleted,
        store.Delete(arguments.key, ConditionOf(arguments)));
    return deleted.is_done ? absl::OkStatus() : NotDone(arguments, deleted);
  });
}

absl::Status RunList(const KvArguments& arguments) {
  return WithStore(arguments, [&](Store& store) -> absl::Status {
    std::vector<std::string> keys;
    uint64_t cursor = 0;
    do {
      ALPHEUS_ASSIGN_OR_RETURN(Store::Page page, store.Scan(cursor));
      for (Store::Entry& one : page.entries) keys.push_back(std::move(one.key));
      cursor = page.next;
    } while (cursor != 0);
    std::ranges::sort(keys);
    std::string text;
    for (const std::string& key : keys) absl::StrAppend(&text, key, "\n");
    return WriteAll(STDOUT_FILENO, text);
  });
}

void AddKv(CLI::App* kv, const char* name, const CommandHelp& help,
           absl::Status (*run)(const KvArguments&), Command* chosen) {
  auto arguments = std::make_shared<KvArguments>();
  CLI::App* const command = AddCommand(kv, name, help);
  AddWriteSourceOptions(command, &arguments->source);
  if (run != RunList) {
    AddOption(command, "KEY", &arguments->key, "The key, 1 to 65535 bytes")
        .Required();
  }
  if (run == RunPut) {
    AddOption(command, "VALUE", &arguments->value,
              "The value; default: standard input, to its end");
    AddFlag(command, "--if-absent", &arguments->if_absent,
            "Only if there is no such key");
  }
  if (run == RunPut || run == RunDelete) {
    AddOption(command, "--if-version", &arguments->if_version,
              "Only if the key has this version; 0: only if there is none")
        .Decimal();
  }
  OnChosen(command, [arguments, chosen, run] {
    *chosen = [arguments, run] {
      return Explain(arguments->source, run(*arguments));
    };
  });
}

}  // namespace

void AddKvCommand(CLI::App* app, Command* chosen) {
  CLI::App* const kv =
      AddSubcommand(app, "kv",
                    "Write and read objects by key\n\n"
                    "A log that has objects has nothing else. It is opened for "
                    "each of these commands, as by `append`.\n");
  RequireSubcommand(kv);
  AddKv(kv, "put",
        {.purpose = "Write an object",
         .about = "Prints the version that the key has then. It is durable.",
         .failed = "anything else: the condition does not hold"},
        RunPut, chosen);
  AddKv(kv, "get",
        {.purpose = "Print an object's value, byte by byte",
         .failed = "anything else: no such key"},
        RunGet, chosen);
  AddKv(kv, "del",
        {.purpose = "Delete an object",
         .failed = "anything else: no such key, the condition does not hold"},
        RunDelete, chosen);
  AddKv(kv, "ls", {.purpose = "Print all keys, in their order"}, RunList,
        chosen);
}

}  // namespace alpheus::cli
