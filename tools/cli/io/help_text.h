// SPDX-License-Identifier: Apache-2.0
// help_text: help as wide as the terminal.
//
// Thread safety: pure functions, except TerminalColumns.
#ifndef ALPHEUS_TOOLS_CLI_IO_HELP_TEXT_H_
#define ALPHEUS_TOOLS_CLI_IO_HELP_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace alpheus::cli {

// Breaks lines longer than `columns` between words. Continues below the start
// of the line's text: after the gap of two spaces or more between an option and
// its meaning, or after the line's own indent. A word that is too long stays
// whole.
std::string WrapHelp(std::string_view text, size_t columns);

// Returns the columns of the terminal at `fd`; else those of COLUMNS; else 80.
// At least 40.
size_t TerminalColumns(int fd);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_HELP_TEXT_H_
