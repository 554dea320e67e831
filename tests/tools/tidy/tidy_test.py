#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/tidy/tidy.py on a small tree with a build folder."""

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
SPEC = importlib.util.spec_from_file_location(
    "tidy", os.path.join(ROOT, "tools", "tidy", "tidy.py"))
tidy = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tidy)

FILES = {
    "log/a.cc": '#include "log/a.h"\n#include <log/foreign.h>\n',
    "log/a.h": '  #  include "alpheus/public.h"\n#include "log/a.h"\n',
    "log/b.cc": '#include "gtest/gtest.h"\n#include "log/a.h"\n',
    "log/c.cc": "",
    "log/foreign.h": "",
    "api/include/alpheus/public.h": "",
}
UNITY = "build-x/log/unity_0.cxx"
PRECOMPILED = "build-x/log/precompiled.cc"
SOURCES = ("log/a.cc", "log/b.cc", "log/c.cc")


class TidyTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path, text in FILES.items():
            self.write(path, text)
        self.make_build(self.root, "-O0")

    def write(self, path, text, root=None):
        path = os.path.join(root or self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def make_build(self, root, flags):
        self.write(UNITY, "".join(f'#include "{root}/log/{name}.cc"\n'
                                  for name in "ab"), root)
        self.write(PRECOMPILED, "", root)
        # One of them is compiled for two targets.
        commands = [{"file": f"{root}/{file}", "directory": f"{root}/build-x",
                     "command": f"ccache c++ {flags} -I{root} "
                                f"-I{root}/api/include -MD -MF x.d "
                                f"-o x.o -c {root}/{file}"}
                    for file in (UNITY, "log/c.cc", "log/a.cc", "log/main.c",
                                 PRECOMPILED)]
        self.write("build-x/compile_commands.json", json.dumps(commands), root)

    def unities(self, root=None):
        root = root or self.root
        return tidy.unities(tidy.Tree(root), os.path.join(root, "build-x"))

    def keys(self, root=None, common="checks"):
        tree = tidy.Tree(root or self.root)
        return {source: tidy.key(tree, unity, source, common)
                for unity in self.unities(root) for source in unity.sources}

    def concerned(self, *changed):
        return tidy.concerned(tidy.Tree(self.root), list(SOURCES), set(changed))

    def changed(self, before):
        after = self.keys()
        return sorted(file for file in after if after[file] != before[file])

    def test_each_own_source_is_in_one_unity(self):
        self.assertEqual([unity.sources for unity in self.unities()],
                         [["log/a.cc", "log/b.cc"], ["log/c.cc"]])

    def test_flags_are_those_of_the_compiler_without_its_files(self):
        self.assertEqual(self.unities()[0].flags, [
            "-O0", f"-I{self.root}", f"-I{self.root}/api/include"])

    def test_what_is_included_at_any_depth_changes_the_key(self):
        for path, of in (("log/a.cc", ["log/a.cc"]), ("log/b.cc", ["log/b.cc"]),
                         ("log/a.h", ["log/a.cc", "log/b.cc"]),
                         ("api/include/alpheus/public.h",
                          ["log/a.cc", "log/b.cc"])):
            with self.subTest(path=path):
                before = self.keys()
                self.write(path, FILES[path] + "// changed\n")
                self.assertEqual(self.changed(before), of)

    def test_what_is_not_included_does_not(self):
        before = self.keys()
        self.write("log/foreign.h", "// changed\n")
        self.assertEqual(self.changed(before), [])

    def test_flags_and_checks_change_all_keys(self):
        before = self.keys()
        self.make_build(self.root, "-O1")
        self.assertEqual(self.changed(before), list(SOURCES))
        before = self.keys()
        for source, key in self.keys(common="others").items():
            self.assertNotEqual(key, before[source])

    def test_another_clone_has_the_same_keys(self):
        with tempfile.TemporaryDirectory() as other:
            for path, text in FILES.items():
                self.write(path, text, other)
            self.make_build(other, "-O0")
            self.assertEqual(self.keys(other), self.keys())

    def test_a_source_that_changed_is_concerned(self):
        self.assertEqual(self.concerned("log/b.cc", "log/gone.cc", "README.md"),
                         {"log/b.cc"})

    def test_what_says_how_sources_are_read_concerns_all(self):
        for path in (".clang-tidy", "tests/.clang-tidy", "cmake/a.cmake",
                     "CMakeLists.txt", "tools/dev:check_tidy"):
            self.assertEqual(self.concerned(path), set(SOURCES), path)
        for path in ("tools/dev", "log/CMakeLists.txt",
                     "cmake/AlpheusInstall.cmake"):
            self.assertEqual(self.concerned(path), set(), path)

    def test_a_header_concerns_its_own_source(self):
        self.assertEqual(self.concerned("log/a.h"), {"log/a.cc"})

    def test_a_header_without_one_concerns_the_one_that_includes_least(self):
        self.write("log/b.cc", '#include "alpheus/public.h"\n')
        self.assertEqual(self.concerned("api/include/alpheus/public.h"),
                         {"log/b.cc"})

    def test_a_header_that_is_seen_anyway_concerns_no_more(self):
        self.assertEqual(self.concerned("log/a.h", "log/b.cc"), {"log/b.cc"})

    def check(self, chosen=SOURCES, said=None):
        """Runs what is chosen with a reader that says this of sources: (how many
        are broken, what was read alone, what was read as one)."""
        said = said or {}
        alone, together = [], []

        class Reader:
            def read_alone(self, _, source):
                alone.append(source)
                return said.get(source, "")

            def tidy(self, _, sources):
                together.append(sources)
                return "".join(said.get(f"tidy {source}", "")
                               for source in sources)

        environment = {"XDG_CACHE_HOME": os.path.join(self.root, "cache")}
        with (mock.patch.dict(os.environ, environment),
              contextlib.redirect_stdout(io.StringIO())):
            broken = tidy.check(Reader(), self.unities(), set(chosen),
                                self.keys(), 1)
        return broken, alone, together

    def test_what_was_clean_is_not_read_again(self):
        self.assertEqual(self.check(), (0, list(SOURCES), [
            ["log/a.cc", "log/b.cc"], ["log/c.cc"]]))
        self.assertEqual(self.check(), (0, [], []))
        self.write("log/b.cc", "// changed\n")
        self.assertEqual(self.check(), (0, ["log/b.cc"], [["log/b.cc"]]))

    def test_only_what_is_chosen_is_read(self):
        self.assertEqual(self.check(["log/b.cc"]),
                         (0, ["log/b.cc"], [["log/b.cc"]]))

    def test_a_source_that_is_broken_by_itself_is_read_again(self):
        said = {"log/a.cc": "misses an include"}
        self.assertEqual(self.check(said=said)[0], 1)
        self.assertEqual(self.check(said=said)[1], ["log/a.cc"])

    def test_a_unity_that_is_not_clean_is_read_again(self):
        said = {"tidy log/b.cc": "uses 0 for nullptr"}
        self.assertEqual(self.check(said=said)[0], 2)
        self.assertEqual(self.check(said=said)[2], [["log/a.cc", "log/b.cc"]])


# The functions of tools/dev that say what has changed since a commit.
CHANGED = r"""
root=$1 own_folders=(log)
eval "$(sed -n '/^changed_since_tidy() {/,/^}/p; /^tidy_options() /p' \
  "$root/tools/dev")"
tidy_base() { git -C "$root" rev-parse HEAD; }
changed_since_tidy
"""


class ChangedSinceTidyTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for path in ("tools", "log", "tests", "cmake"):
            os.mkdir(os.path.join(self.root, path))
        self.dev = os.path.join(self.root, "tools", "dev")
        shutil.copy(os.path.join(ROOT, "tools", "dev"), self.dev)
        for path in (".clang-tidy", "tests/.clang-tidy", "CMakeLists.txt"):
            shutil.copy(os.path.join(ROOT, path),
                        os.path.join(self.root, path))
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit",
                 "--quiet", "--message", "a")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], check=True)

    def changed(self):
        done = subprocess.run(["bash", "-euc", CHANGED, "bash", self.root],
                              check=True, capture_output=True, text=True)
        return done.stdout.split()

    def test_nothing_has_changed(self):
        self.assertEqual(self.changed(), [])

    def test_other_lines_of_the_script_concern_nothing(self):
        with open(self.dev, "a", encoding="utf-8") as file:
            file.write("# More.\n")
        self.assertEqual(self.changed(), [])

    def test_other_flags_concern_all(self):
        with open(self.dev, encoding="utf-8") as file:
            text = file.read()
        with open(self.dev, "w", encoding="utf-8") as file:
            file.write(text.replace("-DCMAKE_CXX_FLAGS_DEBUG=-O0",
                                    "-DCMAKE_CXX_FLAGS_DEBUG=-O1"))
        self.assertEqual(self.changed(), ["tools/dev:check_tidy"])


if __name__ == "__main__":
    unittest.main()
