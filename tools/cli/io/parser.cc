// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/parser.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "log/format/superline.h"
#include "recovery/protocol/messages.h"
#include "tools/cli/io/help_text.h"

namespace alpheus::cli {

const Option& Option::Required() const {
  option_->required();
  return *this;
}

const Option& Option::ShowDefault() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::ShowDefault(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

const Option& Option::Needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

const Option& Option::Excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

const Option& Option::SplitAt(char separator) const {
  option_->delimiter(separator);
  return *this;
}

const Option& Option::Count(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

const Option& Option::Group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

const Option& Option::Decimal() const {
  return Check([](const std::string& text) {
    const bool is_decimal =
        !text.empty() &&
        text.find_first_not_of("0123456789") == std::string::npos;
    return is_decimal ? "" : "'" + text + "' is not a whole decimal number";
  });
}

const Option& Option::Positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

const Option& Option::OneOf(const std::vector<std::string>& texts) const {
  option_->check(CLI::IsMember(texts));
  return *this;
}

const Option& Option::ExistingFile() const {
  option_->check(CLI::ExistingFile);
  return *this;
}

template <class T>
const Option& Option::Range(T least, T most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

template const Option& Option::Range(int, int) const;
template const Option& Option::Range(uint32_t, uint32_t) const;
template const Option& Option::Range(uint64_t, uint64_t) const;

const Option& Option::Check(
    std::function<std::string(const std::string&)> fault) const {
  option_->check(CLI::Validator(
      [fault = std::move(fault)](std::string& text) { return fault(text); },
      ""));
  return *this;
}

template <class T>
Option AddOption(CLI::App* command, const std::string& name, T* value,
                 const std::string& meaning) {
  return Option(command->add_option(name, *value, meaning));
}

#define ALPHEUS_INSTANTIATE(T)                                                \
  template Option AddOption(CLI::App*, const std::string&, T*,                \
                            const std::string&);                              \
  template Option AddOption(CLI::App*, const std::string&, std::optional<T>*, \
                            const std::string&)
ALPHEUS_INSTANTIATE(int);
ALPHEUS_INSTANTIATE(uint64_t);
ALPHEUS_INSTANTIATE(std::string);
#undef ALPHEUS_INSTANTIATE

#define ALPHEUS_INSTANTIATE(T)                                 \
  template Option AddOption(CLI::App*, const std::string&, T*, \
                            const std::string&)
ALPHEUS_INSTANTIATE(uint32_t);
ALPHEUS_INSTANTIATE(double);
ALPHEUS_INSTANTIATE(std::vector<uint64_t>);
ALPHEUS_INSTANTIATE(std::vector<std::string>);
#undef ALPHEUS_INSTANTIATE

Option AddFlag(CLI::App* command, const std::string& name, bool* value,
               const std::string& meaning) {
  return Option(command->add_flag(name, *value, meaning));
}

Option AddOptionFunction(
    CLI::App* command, const std::string& name,
    const std::function<absl::Status(const std::string&)>& take,
    const std::string& meaning) {
  return Option(command->add_option_function<std::string>(
      name,
      [name, take](const std::string& text) {
        const absl::Status status = take(text);
        if (!status.ok()) {
          throw CLI::ValidationError(name, std::string(status.message()));
        }
      },
      meaning));
}

Option FindOption(CLI::App* command, const std::string& name) {
  return Option(command->get_option(name));
}

CLI::App* AddCommand(CLI::App* app, const std::string& name,
                     const CommandHelp& help) {
  return app->add_subcommand(
      name, absl::StrCat(help.purpose, "\n\n", help.about,
                         "\n\nExit status:\n  0  ", help.good, "\n  1  ",
                         help.failed, "\n  2  ", help.usage, "\n  3  ",
                         help.data_loss, "\n  4  ", help.unavailable, "\n"));
}

CLI::App* AddSubcommand(CLI::App* command, const std::string& name,
                        const std::string& meaning) {
  return command->add_subcommand(name, meaning);
}

void RequireSubcommand(CLI::App* command) { command->require_subcommand(1); }

void OnChosen(CLI::App* command, const std::function<void()>& chosen) {
  command->callback(chosen);
}

void RequireWhatIsMissing(CLI::App* command,
                          const std::function<std::string()>& missing) {
  command->parse_complete_callback([command, missing] {
    const std::string what = missing();
    if (!what.empty()) {
      throw CLI::RequiredError(command->get_name() + ": " + what);
    }
  });
}

namespace {

// Returns the mistake in the options as a line, and the remedy. The library
// does not name the file of an unknown option.
std::string RefusalText(const CLI::ParseError& refusal, const CLI::App& app) {
  const std::string said = refusal.what();
  std::string text = said;
  if (dynamic_cast<const CLI::ConfigError*>(&refusal) != nullptr) {
    constexpr absl::string_view kExtra = "INI was not able to parse ";
    const auto file = app.get_config_ptr()->as<std::string>();
    text =
        absl::StrCat(file, ": ",
                     absl::StartsWith(said, kExtra)
                         ? absl::StrCat("'", absl::StripPrefix(said, kExtra),
                                        "' is not an option. Is this the file "
                                        "of options, and not the cluster file?")
                         : said);
  }
  if (dynamic_cast<const CLI::FileError*>(&refusal) != nullptr) {
    text = absl::StrCat(app.get_config_ptr()->as<std::string>(),
                        " can't be read. Is the path right?");
  }
  const bool is_ended = text.ends_with('.') || text.ends_with('?');
  return absl::StrCat(text, is_ended ? "" : ".",
                      "\nRun with --help for more information.\n");
}

// Lists each command with the first line of its help, its purpose.
class PurposeFormatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string help = command->get_description();
    std::string line = "  " + command->get_name();
    line.resize(std::max(line.size() + 1, get_column_width()), ' ');
    return line + help.substr(0, help.find('\n')) + "\n";
  }
};

}  // namespace

Parser::Parser(const std::string& description, const std::string& program)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->formatter(std::make_shared<PurposeFormatter>());
  app_->set_version_flag(
      "--version",
      absl::StrCat(program, " " ALPHEUS_PROJECT_VERSION ", protocol ",
                   recovery::kProtocolVersion, ", log format ", kFormatVersion),
      "Print the versions and exit");
}

Parser::~Parser() = default;

void Parser::Footer(const std::string& text) { app_->footer(text); }

void Parser::AddConfigOption(const std::string& name,
                             const std::string& meaning) {
  Option(app_->set_config(name, "", meaning)->type_name("TEXT"))
      .Check([](const std::string& path) {
        // A pipe would be waited for. A file that is missing is said later.
        std::error_code error;
        const auto found = std::filesystem::status(path, error);
        const bool is_other = std::filesystem::exists(found) &&
                              !std::filesystem::is_regular_file(found);
        return is_other ? path + " is not a regular file. Name a regular file"
                        : "";
      });
  app_->allow_config_extras(CLI::config_extras_mode::error);
}

std::optional<ExitStatus> Parser::Parse(int argc, char** argv) {
  return Parse(std::vector<std::string>(argv + 1, argv + argc), std::cout,
               std::cerr);
}

std::optional<ExitStatus> Parser::Parse(const std::vector<std::string>& words,
                                        std::ostream& output,
                                        std::ostream& error) {
  try {
    // The parser takes words from the end of a vector.
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& refusal) {
    const bool wants_help = refusal.get_exit_code() == 0;
    if (!wants_help && app_->get_require_subcommand_min() > 0) {
      // The parser itself would only say that a command is missing.
      for (const std::string& word : app_->remaining()) {
        error << app_->get_name() << ": '" << word << "' is not a command\n";
      }
    }
    if (wants_help) {
      std::ostringstream said;
      app_->exit(refusal, said, error);
      output << WrapHelp(said.str(), TerminalColumns(STDOUT_FILENO));
    } else {
      error << RefusalText(refusal, *app_);
    }
    return wants_help ? ExitStatus::kGood : ExitStatus::kUsage;
  }
  return std::nullopt;
}

}  // namespace alpheus::cli
