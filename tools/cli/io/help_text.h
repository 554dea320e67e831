// SPDX-License-Identifier: Apache-2.0
// help_text: help as wide as the terminal.
//
// Thread safety: pure functions, but for TerminalColumns.
#ifndef ALPHEUS_TOOLS_CLI_IO_HELP_TEXT_H_
#define ALPHEUS_TOOLS_CLI_IO_HELP_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace alpheus::cli {

// Breaks lines that are longer than `columns` between words, and goes on below
// where the line's text begins: behind the gap of two spaces or more that
// parts an option from what it means, or behind the line's own indent. A word
// that is too long stays whole.
std::string WrapHelp(std::string_view text, size_t columns);

// Of the terminal at `fd`; else as COLUMNS says; else 80. At least 40.
size_t TerminalColumns(int fd);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_HELP_TEXT_H_
