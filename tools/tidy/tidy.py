#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy: what clang and clang-tidy say of own C++ sources.

    tidy.py BUILD [--changed FILE] [--jobs N]

BUILD is a configured build folder that compiles several sources as one (a unity
build) and precompiles nothing. Nothing needs to be compiled there.

Each source is first read by itself, by clang: it must include what it uses, and
clang's warnings, those on thread safety among them, are errors. Then clang-tidy
reads the sources of one unity as one: most of its time goes into the headers.

With --changed only those sources are read that the files listed in FILE, one a
line, concern: each source that is listed, and of each header that is, one source
that includes it. A file that says how sources are read concerns all.

A clean source is remembered under a key of all that was read: the source, all own
files that it includes, directly or not, how it is compiled, and the
configurations of clang-tidy. Own files are included by their whole path, which
lint sees to. Includes that are compiled only elsewhere count, too.

Called by `tools/dev check`.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
CLANG_TIDY = "clang-tidy-19"
CONFIGURATIONS = (".clang-tidy", "tests/.clang-tidy")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# Files that say how sources are read; the last one names a function. What is
# installed is compiled as before.
CONCERN_ALL = re.compile(r"(tests/)?\.clang-tidy|"
                         r"cmake/(?!AlpheusInstall\.cmake).*|CMakeLists\.txt|"
                         r"tools/dev:check_tidy")
# Where a path in an include starts.
INCLUDE_ROOTS = ("", "api/include")
# Keys of old versions are removed.
DAYS_KEPT = 30

# Sources that are compiled as one: `flags` come with each of them, `folder` is
# where the compiler runs, `compiled` the file that it is given.
Unity = collections.namedtuple("Unity", "folder compiled flags sources")


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


def flags_of(command):
    """The words of a compiler's call, but for itself and its files."""
    words, flags = shlex.split(command), []
    # The launcher, if there is one, and the compiler.
    while words and not words[0].startswith("-"):
        words.pop(0)
    while words:
        word = words.pop(0)
        if word in ("-o", "-c", "-MT", "-MF", "-MQ"):
            words.pop(0)
        elif word not in ("-MD", "-MMD"):
            flags.append(word)
    return flags


def unities(tree, build):
    """The sources that a build folder compiles; each own one occurs once."""
    with open(os.path.join(build, "compile_commands.json"),
              encoding="utf-8") as file:
        commands = json.load(file)
    inside = os.path.relpath(build, tree.root) + "/"
    seen, found = set(), []
    for command in commands:
        compiled = os.path.relpath(command["file"], tree.root)
        if not compiled.endswith((".cc", ".cxx")):
            continue
        sources = (sorted(tree.file(compiled)[1])
                   if compiled.startswith(inside) else [compiled])
        sources = [source for source in sources if source not in seen]
        seen.update(sources)
        # A generated file without own sources: nothing to look at.
        if sources:
            found.append(Unity(command["directory"], compiled,
                               flags_of(command["command"]), sources))
    return found


def key(tree, unity, source, common):
    """A sum of all that is read for a source, wherever this clone is."""
    text = [common, " ".join(unity.flags).replace(tree.root, "")]
    text += [f"{path} {tree.file(path)[0]}"
             for path in sorted(tree.closure(source))]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def concerned(tree, sources, changed):
    """The sources that changed, and one for each header that did: its own, or
    else the one that includes the least beside it. All sources if it has changed
    how they are read."""
    if any(map(CONCERN_ALL.fullmatch, changed)):
        return set(sources)
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


class Cache:
    """The keys of what was clean."""

    def __init__(self):
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(
            os.path.expanduser("~"), ".cache")
        self.folder = os.path.join(home, "alpheus", "tidy")
        os.makedirs(self.folder, exist_ok=True)

    def has(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return False
        os.utime(path)  # so that old ones can be told
        return True

    def add(self, name):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8"):
            pass

    def remove_old(self):
        oldest = time.time() - DAYS_KEPT * 24 * 3600
        for entry in os.scandir(self.folder):
            if entry.stat().st_mtime < oldest:
                os.unlink(entry.path)


def run(command, folder):
    """Returns its output, or nothing if it ended well."""
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    if done.returncode == 0:
        return ""
    # The counts of suppressed warnings are noise.
    return "".join(line + "\n" for line in done.stdout.splitlines()
                   if not line.endswith(" warnings generated.")) or \
        f"{command[0]} ended with status {done.returncode}\n"


class Reader:
    """Reads sources of unities, and prints what is wrong with them."""

    def __init__(self, tree, build):
        self.tree = tree
        self.build = build
        # clang-tidy looks for its configuration in the folders above a file.
        shutil.copy(self.path("tests/.clang-tidy"),
                    os.path.join(build, "tests"))

    def path(self, source):
        return os.path.join(self.tree.root, source)

    def read_alone(self, unity, source):
        return run(["clang++-19", *unity.flags, "-fsyntax-only",
                    self.path(source)], unity.folder)

    def tidy(self, unity, sources):
        """Reads them as one, from a file beside the unity's own."""
        file = self.path(unity.compiled)
        if file.startswith(self.build + "/"):
            file = os.path.join(os.path.dirname(file), "chosen_" +
                                os.path.basename(file))
            with open(file, "w", encoding="utf-8") as text:
                for source in sources:
                    text.write(f'#include "{self.path(source)}"\n')
        # From elsewhere clang-tidy does not see the header filter.
        return run([CLANG_TIDY, "--quiet", file, "--", *unity.flags,
                    f"-I{unity.folder}"], self.tree.root)


def check(reader, found, chosen, keys, jobs):
    """Reads those chosen sources of the unities that were not clean before; how
    many of them are not clean."""
    cache, broken = Cache(), set()
    stale = [(unity, [source for source in unity.sources
                      if source in chosen and not cache.has(keys[source])])
             for unity in found]
    stale = [(unity, sources) for unity, sources in stale if sources]
    count = sum(len(sources) for _, sources in stale)
    print(f"clang-tidy: {len(chosen)} sources, {count} of them not seen before",
          flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        alone = [(unity, source) for unity, sources in stale
                 for source in sources]
        for (_, source), said in zip(alone, pool.map(
                lambda item: reader.read_alone(*item), alone)):
            if said:
                broken.add(source)
                print(f"{source}, by itself:\n{said}", flush=True)
        read = 0
        for (_, sources), said in zip(stale, pool.map(
                lambda item: reader.tidy(*item), stale)):
            before, read = read, read + len(sources)
            if read * 10 // count > before * 10 // count:
                print(f"clang-tidy: {read} of {count} read", flush=True)
            if said:
                broken.update(sources)
                print(f"{', '.join(sources)}:\n{said}", flush=True)
                continue
            for source in set(sources) - broken:
                cache.add(keys[source])
    cache.remove_old()
    return len(broken)


def report_uncompiled(compiled):
    """Says which own sources no target compiles, so that nothing reads them."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "--cached",
         "--others", "--exclude-standard", "--", "*.cc"],
        capture_output=True, text=True, check=True)
    left = sorted(source for source in set(listed.stdout.split()) - compiled
                  if os.path.exists(os.path.join(ROOT, source)))
    if left:
        print("clang-tidy: not read, because no target compiles them: " +
              " ".join(left), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--changed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    tree, build = Tree(ROOT), os.path.abspath(arguments.build)
    common = hashlib.sha256(subprocess.run(
        [CLANG_TIDY, "--version"], capture_output=True, check=True).stdout)
    for path in CONFIGURATIONS:
        common.update(tree.file(path)[0].encode())
    found = unities(tree, build)
    keys = {source: key(tree, unity, source, common.hexdigest())
            for unity in found for source in unity.sources}
    report_uncompiled(set(keys))
    chosen = set(keys)
    if arguments.changed:
        with open(arguments.changed, encoding="utf-8") as file:
            chosen = concerned(tree, list(keys), set(file.read().split("\n")))
    broken = check(Reader(tree, build), found, chosen, keys, arguments.jobs)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
