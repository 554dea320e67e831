// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/help_text.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"

namespace alpheus::cli {
namespace {

constexpr size_t kColumnsDefault = 80;
constexpr size_t kColumnsMin = 40;
// Where the parser lets the text of an option begin, if its name leaves room.
constexpr size_t kOptionTextColumn = 30;

// Where the text of a line begins; behind a name that fills its room there is
// only one space. Further to the right than half of the line too little would
// be left of it.
size_t TextColumn(std::string_view line, size_t columns) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return 0;
  size_t text = line.find_first_not_of(' ', line.find("  ", begin));
  const bool is_option = begin > 0 && line[begin] == '-';
  if (is_option && line.size() > kOptionTextColumn &&
      line[kOptionTextColumn - 1] == ' ' && line[kOptionTextColumn] != ' ') {
    text = std::min(text, kOptionTextColumn);
  }
  return text == std::string_view::npos || text > columns / 2 ? begin : text;
}

// A word of a text, or an item of a list that is longer than a line.
struct Word {
  std::string_view text;
  bool is_apart;  // a space stands before it
};

std::vector<Word> WordsOf(std::string_view text, size_t room) {
  std::vector<Word> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_divided = word.size() > room;
    bool is_apart = true;
    for (size_t comma = word.find(',');
         is_divided && comma != std::string_view::npos;
         comma = word.find(',')) {
      words.push_back({word.substr(0, comma + 1), is_apart});
      word.remove_prefix(comma + 1);
      is_apart = false;
    }
    words.push_back({word, is_apart});
  }
  return words;
}

void WrapLine(std::string_view line, size_t columns, std::string* to) {
  if (line.size() <= columns) {
    to->append(line);
    return;
  }
  const size_t indent = TextColumn(line, columns);
  to->append(line.substr(0, indent));
  size_t column = indent;
  for (const Word& word : WordsOf(line.substr(indent), columns - indent)) {
    const size_t space = word.is_apart && column > indent ? 1 : 0;
    if (column > indent && column + space + word.text.size() > columns) {
      to->append("\n").append(indent, ' ');
      column = indent;
    } else {
      to->append(space, ' ');
      column += space;
    }
    to->append(word.text);
    column += word.text.size();
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
