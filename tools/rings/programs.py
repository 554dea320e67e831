# SPDX-License-Identifier: Apache-2.0
"""programs: the inputs of each test program.

A test is run by a program of the build, or by a script. What comes of it is
decided by

  - every file of its suite that is no C++: what cmake reads, scripts, data;
  - the C++ that its program is built from: ninja names the sources, and what they
    include is followed here. An include stands for each file of the tree whose
    path ends so, wherever compilers look;
  - the C++ of other programs, if it may start one (STARTS): then all counts but
    what only programs of GoogleTest are built from. ctest starts these, and nothing
    else in a test (rings_test.py);
  - all C++, if it is a script: it may read any file. Those that are known to read
    less are named below.

Command lines and whatever cmake writes come from files that count. So a folder
that was configured at another commit can only make a program look stale.
"""

import collections
import functools
import hashlib
import os
import re
import subprocess

CPP = (".cc", ".h", ".c")
GENERATED = (".cxx", ".hxx")  # sources that are compiled as one, and the like
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)', re.MULTILINE)
# A program begins another one, or loads a library, by one of these calls only.
STARTS = re.compile(r"\b(exec(l|le|lp|v|ve|vp|vpe|veat)|fexecve|posix_spawnp?|"
                    r"popen|dlm?open|SYS_exec\w+)\b|\bsystem *\(")
# Not such a call: a line that is a comment; a program that begins itself again.
HARMLESS = re.compile(r'^[ \t]*//.*|\bexecve?\("?/proc/self/exe', re.MULTILINE)
# Programs and libraries that can be begun or loaded, by ninja's names of rules.
LINKED = re.compile(r"^(.+): C\w*_(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)"
                    r"_LINKER__", re.MULTILINE)
GOOGLETEST = re.compile(r"^ *alpheus_test\((\w+)", re.MULTILINE)
# Scripts that start programs of the build and read no C++ that only programs of
# GoogleTest are built from.
SCRIPTS = ("install_test", "rocksdb_tree_test", "rocksdb_tools_test",
           "bench_smoke_test", "bench_replicated_smoke_test",
           "bench_remotelog_smoke_test", "bench_ordered_store_smoke_test",
           "bench_rocksdb_smoke_test")
# Scripts that read no C++.
WITHOUT_CPP = ("model_test", "model_check_test", "peer_faults_test",
               "rejoin_oracle_test", "bench_plots_test",
               "bench_rocksdb_plots_test", "bench_replicated_plots_test",
               "bench_remotelog_plots_test", "bench_ordered_store_plots_test")


class Ninja:
    """What ninja knows of a folder that is configured."""

    def __init__(self, folder):
        self.folder = folder

    def _tool(self, *arguments):
        return subprocess.run(["ninja", "-t", *arguments], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=True).stdout

    @functools.cached_property
    def programs(self):
        """{name: target} of programs and shared libraries."""
        return {os.path.basename(match[1]): match[1]
                for match in LINKED.finditer(self._tool("targets", "all"))
                if not match[1].endswith(".cmake")}

    def sources(self, target):
        """Paths of the C++ that a target is built from, or depends on."""
        return [os.path.join(self.folder, line)
                for line in self._tool("inputs", target).splitlines()
                if line.endswith(CPP + GENERATED)]


class Programs:
    """The inputs of test programs, of the files below `paths` (pathspecs)."""

    def __init__(self, tree, paths, ninja):
        self.root = os.path.realpath(tree.root)
        self.ninja = ninja
        self.files = tree.files(paths)
        self.cpp = {path for path in self.files if path.endswith(CPP)}
        self._by_name = collections.defaultdict(list)
        for path in self.cpp:
            self._by_name[os.path.basename(path)].append(path)
        self._scanned = {}

    @functools.cached_property
    def _only_googletest(self):
        """C++ that only programs of GoogleTest are built from."""
        with open(os.path.join(self.root, "tests", "CMakeLists.txt"),
                  encoding="utf-8") as file:
            googletests = set(GOOGLETEST.findall(file.read()))
        built = {True: set(), False: set()}
        for name in self.ninja.programs:
            built[name in googletests] |= self.built_from(name)
        return built[True] - built[False]

    def _scan(self, path):
        """(files that it includes, whether it may start a program)."""
        if path not in self._scanned:
            try:
                with open(path, encoding="utf-8") as file:
                    text = file.read()
            except FileNotFoundError:  # of another commit, or not built yet
                text = ""
            included = {found for name in INCLUDE.findall(text)
                        for found in self._found(name)}
            starts = path.endswith(CPP) and STARTS.search(HARMLESS.sub("", text))
            self._scanned[path] = included, bool(starts)
        return self._scanned[path]

    def _found(self, name):
        """Files of the tree that an include may mean."""
        name = os.path.normpath(name)
        if os.path.isabs(name):
            name = os.path.relpath(name, self.root)
        name = "/" + name.replace("../", "")
        return [path for path in self._by_name[os.path.basename(name)]
                if ("/" + path).endswith(name)]

    @functools.cache
    def built_from(self, name):
        """C++ of the tree that a program is built from."""
        seen, found = set(), set()
        ahead = [os.path.realpath(path) for path in
                 self.ninja.sources(self.ninja.programs[name])]
        while ahead:
            path = ahead.pop()
            if path in seen:
                continue
            seen.add(path)
            inside = os.path.relpath(path, self.root)
            if inside in self.cpp:
                found.add(inside)
            ahead += [os.path.join(self.root, included)
                      for included in self._scan(path)[0]]
        return frozenset(found)

    def starts_others(self, name):
        """Whether a program may start another one."""
        return any(self._scan(os.path.join(self.root, path))[1]
                   for path in self.built_from(name))

    def sources_of(self, name):
        """C++ that decides what comes of the tests of a program or script."""
        if name not in self.ninja.programs:
            if name in WITHOUT_CPP:
                return set()
            return self.cpp - self._only_googletest if name in SCRIPTS else self.cpp
        own = self.built_from(name)
        if not self.starts_others(name):
            return own
        return own | (self.cpp - self._only_googletest)

    @functools.cache
    def inputs(self, name):
        """Hash of the files that decide what comes of them."""
        counted = (set(self.files) - self.cpp) | self.sources_of(name)
        text = "".join(f"{self.files[path]} {path}\n" for path in sorted(counted))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_known = {}


def of_folder(tree, paths, folder):
    """Programs by a build folder of the tree, or by that of the plain build; None
    if neither is configured. What is read is kept while it is the same."""
    for name in (folder, "build"):
        ninja = Ninja(os.path.join(tree.root, name))
        try:
            configured = os.stat(os.path.join(ninja.folder, "build.ninja"))
            key = ninja.folder, configured.st_mtime_ns, tree.inputs(paths)
            if key not in _known:
                _known[key] = Programs(tree, paths, ninja)
            return _known[key]
        except (FileNotFoundError, subprocess.CalledProcessError):
            continue
    return None
