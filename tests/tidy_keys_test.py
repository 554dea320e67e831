#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/tidy/keys.py on a small tree with a build folder."""

import importlib.util
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPEC = importlib.util.spec_from_file_location(
    "keys", os.path.join(ROOT, "tools", "tidy", "keys.py"))
keys = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(keys)

FILES = {
    "log/a.cc": '#include "log/a.h"\n#include <log/foreign.h>\n',
    "log/a.h": '  #  include "alpheus/public.h"\n#include "log/a.h"\n',
    "log/b.cc": '#include "gtest/gtest.h"\n#include "log/a.h"\n',
    "log/c.cc": "",
    "log/foreign.h": "",
    "api/include/alpheus/public.h": "",
}
SOURCES = ("log/a.cc", "log/b.cc", "log/c.cc")
GENERATED = "build-x/log/precompiled.cc"


class KeysTest(unittest.TestCase):

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
        # One of them is compiled for two targets.
        commands = [{"file": f"{root}/{file}",
                     "command": f"c++ {flags} -I{root}/ -c {root}/{file}"}
                    for file in (*SOURCES, "log/a.cc", "log/main.c", GENERATED)]
        self.write("build-x/compile_commands.json", json.dumps(commands), root)

    def keys(self, root=None, common="checks"):
        root = root or self.root
        return dict(keys.entries(keys.Tree(root),
                                 os.path.join(root, "build-x"), common))

    def concerned(self, *changed):
        return keys.concerned(keys.Tree(self.root), list(SOURCES), set(changed))

    def changed(self, before):
        after = self.keys()
        return sorted(file for file in after if after[file] != before[file])

    def test_each_own_source_has_a_key(self):
        self.assertEqual(tuple(self.keys()), SOURCES)

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

    def test_a_header_concerns_its_own_source(self):
        self.assertEqual(self.concerned("log/a.h"), {"log/a.cc"})

    def test_a_header_without_one_concerns_the_one_that_includes_least(self):
        self.write("log/b.cc", '#include "alpheus/public.h"\n')
        self.assertEqual(self.concerned("api/include/alpheus/public.h"),
                         {"log/b.cc"})

    def test_a_header_that_is_seen_anyway_concerns_no_more(self):
        self.assertEqual(self.concerned("log/a.h", "log/b.cc"), {"log/b.cc"})


if __name__ == "__main__":
    unittest.main()
