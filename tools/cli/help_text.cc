// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help_text.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace alpheus::cli {
namespace {

constexpr size_t kColumnsDefault = 80;
constexpr size_t kColumnsMin = 40;

// Where the text of a line begins. Further to the right than half of the line
// too little would be left of it.
size_t TextColumn(std::string_view line, size_t columns) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return 0;
  const size_t gap = line.find("  ", begin);
  if (gap == std::string_view::npos) return begin;
  const size_t text = line.find_first_not_of(' ', gap);
  return text == std::string_view::npos || text > columns / 2 ? begin : text;
}

void WrapLine(std::string_view line, size_t columns, std::string* to) {
  if (line.size() <= columns) {
    to->append(line);
    return;
  }
  const size_t indent = TextColumn(line, columns);
  to->append(line.substr(0, indent));
  size_t column = indent;
  for (const absl::string_view word :
       absl::StrSplit(std::string(line.substr(indent)), ' ')) {
    if (column > indent && column + 1 + word.size() > columns) {
      to->append("\n").append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      to->push_back(' ');
      ++column;
    }
    to->append(word.data(), word.size());
    column += word.size();
  }
}

}  // namespace

std::string WrapHelp(std::string_view text, size_t columns) {
  std::string wrapped;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    WrapLine(text.substr(0, end), columns, &wrapped);
    if (end < text.size()) wrapped.push_back('\n');
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wrapped;
}

size_t TerminalColumns(int fd) {
  winsize size{};
  uint32_t columns = kColumnsDefault;
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    columns = size.ws_col;
  } else if (const char* said = std::getenv("COLUMNS"); said != nullptr) {
    if (!absl::SimpleAtoi(said, &columns)) columns = kColumnsDefault;
  }
  return std::max<size_t>(columns, kColumnsMin);
}

}  // namespace alpheus::cli
