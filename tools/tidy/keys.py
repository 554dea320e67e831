#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""keys: what clang-tidy has to look at, and a key of all that it would see.

Usage: keys.py BUILD CHECKS... prints a line `KEY FILE SOURCE...` for each C++
file that the configured build folder BUILD compiles: an own source, or the file
that includes several of them (a unity build), and the own sources in it. The
key covers those, all own files that they include, directly or not, how the file
is compiled, and the contents of the files CHECKS and of standard input.
Nothing needs to be compiled for it: own files are included by their whole path,
which lint sees to. Includes that are compiled only elsewhere count, too.

Called by `tools/dev check`, which skips what a key says was looked at before.
"""

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
    """Yields (key, compiled file, own sources in it), paths from the root."""
    with open(os.path.join(build, "compile_commands.json"),
              encoding="utf-8") as file:
        commands = json.load(file)
    build = os.path.relpath(build, tree.root)
    for command in commands:
        compiled = os.path.relpath(command["file"], tree.root)
        if not compiled.endswith((".cc", ".cxx")):
            continue
        closure = tree.closure(compiled)
        # Without the place of this clone.
        text = [common, command["command"].replace(tree.root + "/", "")]
        text += [f"{path} {tree.file(path)[0]}" for path in sorted(closure)
                 if not path.startswith(build + "/")]
        key = hashlib.sha256("\n".join(text).encode()).hexdigest()
        if compiled.startswith(build + "/"):
            yield key, compiled, sorted(tree.file(compiled)[1])
        else:
            yield key, compiled, [compiled]


def main():
    build, checks = os.path.abspath(sys.argv[1]), sys.argv[2:]
    common = hashlib.sha256(sys.stdin.buffer.read())
    for path in checks:
        with open(path, "rb") as file:
            common.update(file.read())
    for key, compiled, sources in entries(Tree(ROOT), build,
                                          common.hexdigest()):
        # A generated file without own sources: nothing to look at.
        if sources:
            print(key, compiled, *sources)


if __name__ == "__main__":
    main()
