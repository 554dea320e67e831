// SPDX-License-Identifier: Apache-2.0
// parser: declares the options of a program and its commands.
//
// Idea: CLI11 is all inline, and takes seconds to compile in each source that
// includes it. So only parser.cc does. Other sources declare their options by
// these functions, which merely call it. T is one of the types that parser.cc
// instantiates them for.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_IO_PARSER_H_
#define ALPHEUS_TOOLS_CLI_IO_PARSER_H_

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/cli/io/exit_status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
}  // namespace CLI

namespace alpheus::cli {

// Option of a command. Each member returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& Required() const;
  // Shows the present value in the help.
  const Option& ShowDefault() const;
  const Option& ShowDefault(const std::string& text) const;
  const Option& Needs(const Option& other) const;
  const Option& Excludes(const Option& other) const;
  // Splits one word into several values.
  const Option& SplitAt(char separator) const;
  const Option& Count(int least, int most) const;
  // Lists it under this heading in the help.
  const Option& Group(const std::string& heading) const;

  // Allows decimal digits only: CLI11 by itself takes -1 for 2^64 - 1 and 010
  // for 8.
  const Option& Decimal() const;
  const Option& Positive() const;
  const Option& OneOf(const std::vector<std::string>& texts) const;
  const Option& ExistingFile() const;
  template <class T>
  const Option& Range(T least, T most) const;
  // Allows values for which `fault` returns nothing.
  const Option& Check(
      std::function<std::string(const std::string&)> fault) const;

 private:
  CLI::Option* option_;
};

// `value` must outlive the parser, here and below.
template <class T>
Option AddOption(CLI::App* command, const std::string& name, T* value,
                 const std::string& meaning);
Option AddFlag(CLI::App* command, const std::string& name, bool* value,
               const std::string& meaning);
// Adds an option whose text `take` may refuse.
Option AddOptionFunction(
    CLI::App* command, const std::string& name,
    const std::function<absl::Status(const std::string&)>& take,
    const std::string& meaning);
// Returns the option of that name. Requires: it was added.
Option FindOption(CLI::App* command, const std::string& name);

// Help of a command, and the meaning of each exit status (exit_status.h).
struct CommandHelp {
  std::string purpose = {};  // one line; the list of commands shows only it
  std::string about = {};    // sentences; a line end begins a new paragraph
  std::string good = "all that was asked is done";
  std::string failed = "anything else: no such file, region in use, ring full";
  std::string usage = "the command line can never be right";
  std::string data_loss = "damage, or records that can't be read any more";
  std::string unavailable = "a medium, a quorum or a node can't be reached";
};
CLI::App* AddCommand(CLI::App* app, const std::string& name,
                     const CommandHelp& help);
// Adds a command that has commands itself. `meaning`: its purpose, one line,
// then the rest.
CLI::App* AddSubcommand(CLI::App* command, const std::string& name,
                        const std::string& meaning);
void RequireSubcommand(CLI::App* command);
void OnChosen(CLI::App* command, const std::function<void()>& chosen);
// Calls `missing` after parsing; it returns what is still required, if
// anything.
void RequireWhatIsMissing(CLI::App* command,
                          const std::function<std::string()>& missing);

// The parser of a program.
class Parser {
 public:
  Parser(const std::string& description, const std::string& program);
  ~Parser();

  CLI::App* app() { return app_.get(); }

  void Footer(const std::string& text);
  // Adds an option that names a TOML file with the other options. Keys in the
  // file that match no option are refused.
  void AddConfigOption(const std::string& name, const std::string& meaning);

  // Parses. Returns the status to end with at once: usage, or good (help).
  std::optional<ExitStatus> Parse(int argc, char** argv);
  std::optional<ExitStatus> Parse(const std::vector<std::string>& words,
                                  std::ostream& output, std::ostream& error);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_PARSER_H_
