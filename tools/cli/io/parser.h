// SPDX-License-Identifier: Apache-2.0
// parser: what a program, and each of its commands, can be told on the command
// line.
//
// Idea: CLI11 is all inline, and takes seconds to compile wherever it is
// included. So parser.cc alone includes it, and others declare what they take
// by these functions, which do no more than call it. T is one of the types that
// parser.cc instantiates them for.
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

// An option that a command has. Each member returns the option itself.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& Required() const;
  // Help shows the value that it has now.
  const Option& ShowDefault() const;
  const Option& ShowDefault(const std::string& text) const;
  const Option& Needs(const Option& other) const;
  const Option& Excludes(const Option& other) const;
  // One word holds several values.
  const Option& SplitAt(char separator) const;
  const Option& Count(int least, int most) const;
  // Under this heading in the help.
  const Option& Group(const std::string& heading) const;

  // Limits on its value.
  // Decimal digits only: CLI11 by itself takes -1 for 2^64 - 1 and 010 for 8.
  const Option& Decimal() const;
  const Option& Positive() const;
  const Option& OneOf(const std::vector<std::string>& texts) const;
  const Option& ExistingFile() const;
  template <class T>
  const Option& Range(T least, T most) const;
  // What `fault` has nothing to say about.
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
// An option whose text `take` may refuse.
Option AddOptionFunction(
    CLI::App* command, const std::string& name,
    const std::function<absl::Status(const std::string&)>& take,
    const std::string& meaning);
// Requires: it was added.
Option FindOption(CLI::App* command, const std::string& name);

CLI::App* AddSubcommand(CLI::App* command, const std::string& name,
                        const std::string& meaning);
void RequireSubcommand(CLI::App* command);
void OnChosen(CLI::App* command, const std::function<void()>& chosen);
// Once all is read, `missing` says what of it is still required, if anything.
void RequireWhatIsMissing(CLI::App* command,
                          const std::function<std::string()>& missing);

// The parser of a program.
class Parser {
 public:
  Parser(const std::string& description, const std::string& program);
  ~Parser();

  CLI::App* app() { return app_.get(); }

  void Footer(const std::string& text);
  // An option that names a file with the others, as TOML; what the file says
  // and no option is called is refused.
  void AddConfigOption(const std::string& name, const std::string& meaning);

  // The status to end with at once: usage, or good (help).
  std::optional<ExitStatus> Parse(int argc, char** argv);
  std::optional<ExitStatus> Parse(const std::vector<std::string>& words,
                                  std::ostream& output, std::ostream& error);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_PARSER_H_
