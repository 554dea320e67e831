#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""keys: what clang-tidy has to look at, and a key of all that it would see.

Usage: keys.py BUILD [--changed FILE] CHECKS... prints a line `KEY SOURCE` for
each own C++ source that the configured build folder BUILD compiles. The key
covers the source, all own files that it includes, directly or not, how it is
compiled, and the contents of the files CHECKS and of standard input. Nothing
needs to be compiled for it: own files are included by their whole path, which
lint sees to. Includes that are compiled only elsewhere count, too.

With --changed only those that the files listed in FILE, one a line, concern: each
source that is listed, and of each header that is, one source that includes it.

Called by `tools/dev check`, which skips what a key says was looked at before.
"""

import argparse
import hashlib
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# Where a path in an include starts.
INCLUDE_ROOTS = ("", "api/include")


class Tree:
    """The own files below a root; each is read once."""

    def __init__(self, root):
        self.root = root
        self.read = {}

    def file(self, path):
        """(hash of the contents, own files that it includes)."""
        if path not in self.read:
            with open(os.path.join(self.root, path), "rb") as file:
                contents = file.read()
            names = {match.decode() for match in INCLUDE.findall(contents)}
            found = {self.find(name) for name in names} - {None}
            self.read[path] = hashlib.sha256(contents).hexdigest(), found
        return self.read[path]

    def find(self, name):
        """The own file that an include means; None if it is a foreign one."""
        for start in INCLUDE_ROOTS:
            path = os.path.relpath(os.path.join(self.root, start, name),
                                   self.root)
            if (not path.startswith("..") and
                    os.path.isfile(os.path.join(self.root, path))):
                return path
        return None

    def closure(self, path):
        """The file and all that it includes, directly or not."""
        seen, open_paths = set(), [path]
        while open_paths:
            path = open_paths.pop()
            if path not in seen:
                seen.add(path)
                open_paths.extend(self.file(path)[1])
        return seen


def entries(tree, build, common):
    """Yields (source, key), paths from the root; each source once."""
    with open(os.path.join(build, "compile_commands.json"),
              encoding="utf-8") as file:
        commands = json.load(file)
    build = os.path.relpath(build, tree.root)
    seen = set()
    for command in commands:
        source = os.path.relpath(command["file"], tree.root)
        if (not source.endswith(".cc") or source.startswith(build + "/") or
                source in seen):
            continue
        seen.add(source)
        # Without the place of this clone.
        text = [common, command["command"].replace(tree.root + "/", "")]
        text += [f"{path} {tree.file(path)[0]}"
                 for path in sorted(tree.closure(source))]
        yield source, hashlib.sha256("\n".join(text).encode()).hexdigest()


def concerned(tree, sources, changed):
    """Of the sources those that changed, and one for each header that did: its
    own, or else the one that includes the least beside it."""
    chosen = {source for source in sources if source in changed}
    closures = {source: tree.closure(source) for source in sources}
    for header in sorted(changed):
        users = [source for source in sources if header in closures[source]]
        if not header.endswith(".h") or not users or chosen & set(users):
            continue
        own = header[:-len(".h")] + ".cc"
        chosen.add(own if own in users else
                   min(users, key=lambda user: (len(closures[user]), user)))
    return chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("checks", nargs="*")
    parser.add_argument("--changed")
    arguments = parser.parse_args()
    common = hashlib.sha256(sys.stdin.buffer.read())
    for path in arguments.checks:
        with open(path, "rb") as file:
            common.update(file.read())
    tree = Tree(ROOT)
    keys = dict(entries(tree, os.path.abspath(arguments.build),
                        common.hexdigest()))
    chosen = set(keys)
    if arguments.changed:
        with open(arguments.changed, encoding="utf-8") as file:
            chosen = concerned(tree, list(keys), set(file.read().split("\n")))
    for source in sorted(chosen):
        print(keys[source], source)


if __name__ == "__main__":
    main()
