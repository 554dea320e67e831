#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weave: writes the sources of the product with all mutants woven in.

    weave.py --list              the sources that have mutants, one a line
    weave.py OUT                 writes these below OUT, and a list of all names

The tables are tests/mutants/*.mutants. An entry is a mutant:

    mutant: kAckOfAnotherSession
    hole: P-H21
    what: an ack of another session counts
    test: replication_test:PrimarySessionTest.AckOfAnotherSessionCountsForNothing
    file: replication/session/primary_session.cc
    - if (!is_ours)
    + if (false)

`hole` is what the mutant opens again: a hole of the protocol, or a rule of it
or of a header. `what` is what the log does wrong then. `test` is
program:filter, the test of that rule, which must fail. The `-` lines are the
anchor: text that stands in the file exactly once. White space and comments
don't count, so that the anchor is found when a line is broken elsewhere. The
`+` lines stand in its place when the mutant is on. Without `+` lines nothing
does. A mutant with several places has another `file:` line, `-` lines and `+`
lines for each. Entries are parted by blank lines. A line that begins with # is
a comment.

The tool finds what differs between anchor and replacement, and makes the guard:

  statements      { if (IsMutant("kName")) { NEW } else { OLD } }
  an expression   (IsMutant("kName") ? (NEW) : (OLD))

It takes as few whole statements as hold the difference. If there are none, it
takes the whole expression, up to a bracket, a comma, an assignment or a return.
A declaration is no statement here, because the guard would end the life of its
name: there the expression behind the name differs.

Only one mutant is on at a time, so NEW has no guards inside. OLD may have: a
smaller change inside a larger one, and the later of two changes of one text.
Two changes must not overlap in part.

The copies begin with #line and have the lines of the sources, so that errors
and debuggers name the source. A copy that stays the same is not written again.
A copy of a source that is in no table any more is removed.
"""

import argparse
import collections
import difflib
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TABLES = "tests/mutants"
SWITCH = "tools/mutants/mutant.h"
NAMES = "tools/mutants/mutant_names.inc"

FIELDS = ("mutant", "hole", "what", "test")
# `where` is table:line.
Mutant = collections.namedtuple("Mutant", "name hole what test edits where")
# old and new are the texts of anchor and replacement.
Edit = collections.namedtuple("Edit", "name file old new where")


class WeaveError(Exception):
    """An entry that can't be read, or not be woven."""

    def __init__(self, where, what):
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what


# ---------------------------------------------------------------------------
# The tables.

def read_edit(name, lines, where):
    """One Edit: its file, the anchor's lines, and those of the replacement."""
    file = re.fullmatch(r"file: (\S+)", lines[0])
    if not file:
        raise WeaveError(where, f"this is not `file: PATH`: {lines[0]!r}")
    if not re.fullmatch("-+[+]*", "".join(line[:1] for line in lines[1:])):
        raise WeaveError(where, "`- ANCHOR` and `+ REPLACEMENT` must follow")
    texts = ["\n".join(line[2:] for line in lines[1:] if line[:1] == mark)
             for mark in "-+"]
    return Edit(name, file.group(1), *texts, where)


def read_entry(lines, where):
    """One Mutant from the lines of an entry."""
    fields, rest = lines[:len(FIELDS)], lines[len(FIELDS):]
    for key, line in zip(FIELDS, fields + [""] * len(FIELDS)):
        if not re.fullmatch(rf"{key}: \S.*", line):
            raise WeaveError(where, f"this is not `{key}: ...`: {line!r}")
    values = [line.partition(": ")[2] for line in fields]
    if not re.fullmatch(r"k\w+", values[0]):
        raise WeaveError(where, "a mutant's name is k and a word")
    starts = [i for i, line in enumerate(rest) if line.startswith("file:")]
    if not starts or starts[0] != 0:
        raise WeaveError(where, "`file: PATH` must follow the test")
    edits = [read_edit(values[0], rest[start:end], where)
             for start, end in zip(starts, starts[1:] + [len(rest)])]
    return Mutant(*values, edits, where)


def read_table(path, name):
    """The mutants of one table."""
    lines = read(path).split("\n")
    mutants, entry = [], []
    for number, line in enumerate(lines + [""], 1):
        if line.strip() and not line.startswith("#"):
            entry.append(line.rstrip())
        elif entry and not line.strip():
            mutants.append(read_entry(entry, f"{name}:{number - len(entry)}"))
            entry = []
    return mutants


def read_tables(root=ROOT):
    """All mutants, in the order of the tables' names."""
    mutants, places = [], {}
    for path in sorted(glob.glob(os.path.join(root, TABLES, "*.mutants"))):
        mutants += read_table(path, os.path.relpath(path, root))
    for mutant in mutants:
        if mutant.name in places:
            raise WeaveError(mutant.where, f"{mutant.name} is in "
                             f"{places[mutant.name]} already")
        places[mutant.name] = mutant.where
    return mutants


# ---------------------------------------------------------------------------
# Tokens.

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?:u8|[uUL])?R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"
  | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
  | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+'
  | \d[\w.']*
  | \w+
  | &&|\|\||->|::|[-=!<>+*/%&|^]=
  | \S
""", re.DOTALL | re.VERBOSE)
OPENING = {")": "(", "]": "[", "}": "{"}


class Text:
    """A text and its tokens, without comments."""

    def __init__(self, text):
        self.text = text
        self.tokens = []
        self.spans = []
        self.has_comment = False
        for match in TOKEN.finditer(text):
            if match.group("comment"):
                self.has_comment = True
                continue
            self.tokens.append(match.group())
            self.spans.append(match.span())
        self.joined = "\0" + "\0".join(self.tokens) + "\0"

    def places(self, part):
        """Where the tokens of another text begin in these: indices."""
        found, at = [], self.joined.find(part.joined)
        while at >= 0:
            found.append(self.joined.count("\0", 0, at + 1) - 1)
            at = self.joined.find(part.joined, at + 1)
        return found

    def span(self, begin, end):
        """Where tokens [begin, end) start and stop; of none, where the token
        behind them starts."""
        if begin < end:
            return self.spans[begin][0], self.spans[end - 1][1]
        start = (self.spans[begin][0] if begin < len(self.spans)
                 else len(self.text))
        return start, start

    def line_of(self, index):
        return self.text.count("\n", 0, self.spans[index][0]) + 1

    def slice(self, begin, end):
        """The text of tokens [begin, end)."""
        start, stop = self.span(begin, end)
        return self.text[start:stop]


def is_balanced(tokens):
    open_ones = []
    for token in tokens:
        if token in ("(", "[", "{"):
            open_ones.append(token)
        elif token in OPENING:
            if not open_ones or open_ones.pop() != OPENING[token]:
                return False
    return not open_ones


def nearest_line(text, anchor):
    """The number of the line that is most like the anchor."""
    wanted = anchor.strip().split("\n")[0].strip()
    ratios = [difflib.SequenceMatcher(None, wanted, line.strip()).ratio()
              for line in text.split("\n")]
    return ratios.index(max(ratios)) + 1


def find_anchor(source, edit):
    """The index of the anchor's first token."""
    places = source.places(Text(edit.old))
    if len(places) == 1:
        return places[0]
    if places:
        lines = [str(source.line_of(place)) for place in places]
        raise WeaveError(edit.where, f"the anchor of {edit.name} stands in "
                         f"{edit.file} {len(places)} times: lines "
                         + ", ".join(lines))
    near = nearest_line(source.text, edit.old)
    line = source.text.split("\n")[near - 1].strip()
    raise WeaveError(edit.where, f"the anchor of {edit.name} is not in "
                     f"{edit.file}; the nearest is line {near}: {line}")


# ---------------------------------------------------------------------------
# The parts that differ.

# The characters that may precede statements where they are cut, the anchor
# itself, and a whole expression; and those that may follow it.
BEFORE_STATEMENT = (";", "{", "}")
BEFORE_ANCHOR = BEFORE_STATEMENT + (")", "else", "]", ":")
BEFORE_EXPRESSION = ("(", "[", "{", ",", "return", "=", "+=", "-=", "|=", "&=",
                     "^=")
BEHIND_EXPRESSION = (")", "]", "}", ",", ";")


def common(old, new):
    """How many tokens both begin with."""
    return len(os.path.commonprefix([old, new]))


# A declaration: a type followed by a name, or a macro that declares.
DECLARATION = re.compile(r"""
    (const|constexpr|static|thread_local|auto|using)\b
  | (?!(return|delete|throw|goto|case|else|new)\b)
    (typename\ )?\w+(\ ::\ \w+|\ <[^;=]*?>)*(\ [*&])*\ \w+\ [=({;\[]
  | \w+\ \(\ (const|auto)\b
""", re.VERBOSE)


def declares(tokens):
    """Whether one of these statements, not inside another one, declares."""
    depth, start = 0, 0
    for i, token in enumerate(tokens):
        depth += (token in OPENING.values()) - (token in OPENING)
        if depth == 0 and token in (";", "}"):
            if DECLARATION.match(" ".join(tokens[start:i + 1])):
                return True
            start = i + 1
    return False


def is_statements(tokens):
    return (not tokens or tokens[-1] in (";", "}") and tokens[0] != "else"
            ) and is_balanced(tokens)


def are_statements(around, is_all, old, new):
    """Whether these are statements, between these two tokens. A body without
    braces can only be changed, and only as a whole anchor."""
    if not old:
        before = BEFORE_STATEMENT + (":",)  # of a label
    else:
        before = BEFORE_ANCHOR if is_all else BEFORE_STATEMENT
    return (around[0] in before and is_statements(old) and is_statements(new)
            and not declares(old))


def are_expressions(around, _, old, new):
    """Whether these are whole expressions, between these two tokens."""
    return bool(around[0] in BEFORE_EXPRESSION and around[1] in BEHIND_EXPRESSION
                and old and new and is_balanced(old) and is_balanced(new))


# The text from start to stop of a source becomes new, by this edit.
Change = collections.namedtuple("Change", "start stop kind new edit")


def find_change(source, edit):
    """The smallest whole statements that differ, else the expression."""
    at = find_anchor(source, edit)
    old, replacement = Text(edit.old).tokens, Text(edit.new)
    new = replacement.tokens
    if replacement.has_comment:
        raise WeaveError(edit.where, f"{edit.name} has a comment in its "
                         "replacement")
    padded = [";"] + source.tokens + [";"]  # token i is padded[i + 1]
    first, last = common(old, new), common(old[::-1], new[::-1])
    for are_whole in (are_statements, are_expressions):
        for p in range(first, -1, -1):
            for s in range(min(last, len(old) - p, len(new) - p), -1, -1):
                end = len(old) - s
                parts = old[p:end], new[p:len(new) - s]
                around = padded[at + p], padded[at + end + 1]
                if parts[0] != parts[1] and are_whole(
                        around, p == 0, *parts):
                    return Change(*source.span(at + p, at + end), are_whole,
                                  replacement.slice(p, len(new) - s), edit)
    raise WeaveError(edit.where, f"{edit.name} changes neither whole "
                     "statements nor a whole expression")


# ---------------------------------------------------------------------------
# Weaving.

def guarded(change, old):
    new = re.sub(r"\s*\n\s*", " ", change.new)
    switch = f'::alpheus::IsMutant("{change.edit.name}")'
    if change.kind == are_expressions:
        return f"({switch} ? ({new}) : ({old}))"
    if not old:
        return f"{{ if ({switch}) {{ {new} }} }} "
    if not new:
        return f"{{ if (!{switch}) {{ {old} }} }}"
    return f"{{ if ({switch}) {{ {new} }} else {{ {old} }} }}"


def nest(text, changes, start, stop):
    """The text from start to stop with these changes, which lie in it, the
    outer ones before the inner ones."""
    out = []
    while changes:
        outer, *changes = changes
        inner = [change for change in changes if change.start < outer.stop
                 or change.start == outer.start]
        for change in inner:
            if change.stop > outer.stop:
                raise WeaveError(change.edit.where, f"{change.edit.name} and "
                                 f"{outer.edit.name} overlap in part")
        changes = changes[len(inner):]
        out += [text[start:outer.start],
                guarded(outer, nest(text, inner, outer.start, outer.stop))]
        start = outer.stop
    return "".join(out) + text[start:stop]


def weave(text, changes, name):
    """A source with these changes in it; `name` is for #line."""
    ordered = sorted(changes, key=lambda change: (change.start, -change.stop))
    return (f'#include "{SWITCH}"\n#line 1 "{name}"\n'
            + nest(text, ordered, 0, len(text)))


def by_file(mutants):
    """The edits of each source."""
    files = {}
    for mutant in mutants:
        for edit in mutant.edits:
            files.setdefault(edit.file, []).append(edit)
    return files


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    """Leaves a file alone that says the same: what it is built into is too."""
    if os.path.exists(path) and read(path) == text:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_all(root, out):
    """Weaves all sources. The compiler runs in the folder around `out`."""
    out = os.path.abspath(out)
    mutants = read_tables(root)
    texts = {NAMES: "".join(f"ALPHEUS_MUTANT({mutant.name})\n"
                            for mutant in mutants)}
    for file, edits in by_file(mutants).items():
        path = os.path.join(root, file)
        source = Text(read(path))
        changes = [find_change(source, edit) for edit in edits]
        texts[file] = weave(source.text, changes,
                            os.path.relpath(path, os.path.dirname(out)))
    for file, text in texts.items():
        write(os.path.join(out, file), text)
    for folder, _, names in os.walk(out):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, out) not in texts:
                os.remove(path)


def main():
    parser = argparse.ArgumentParser(
        prog="weave.py", description="Writes the sources with all mutants in.")
    parser.add_argument("out", nargs="?", help="folder of the copies")
    parser.add_argument("--list", action="store_true",
                        help="print the sources that have mutants")
    parser.add_argument("--root", default=ROOT, help="root of the sources")
    arguments = parser.parse_args()
    try:
        if arguments.list:
            print("\n".join(sorted(by_file(read_tables(arguments.root)))))
        elif arguments.out:
            write_all(arguments.root, arguments.out)
        else:
            parser.error("OUT or --list is missing")
    except (WeaveError, OSError) as error:
        sys.exit(f"weave: {error}")


if __name__ == "__main__":
    main()
