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

UNITY = "build-x/log/unity_0.cxx"
FILES = {
    "log/a.cc": '#include "log/a.h"\n#include <log/foreign.h>\n',
    "log/a.h": '  #  include "alpheus/public.h"\n#include "log/a.h"\n',
    "log/b.cc": '#include "gtest/gtest.h"\n',
    "log/c.cc": "",
    "log/foreign.h": "",
    "api/include/alpheus/public.h": "",
}


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
        self.write(UNITY, "".join(f'#include "{root}/log/{name}.cc"\n'
                                  for name in "ab"), root)
        commands = [{"file": f"{root}/{file}",
                     "command": f"c++ {flags} -I{root}/ -c {root}/{file}"}
                    for file in (UNITY, "log/c.cc", "log/main.c")]
        self.write("build-x/compile_commands.json", json.dumps(commands), root)

    def keys(self, root=None, common="checks"):
        root = root or self.root
        return {file: (key, sources) for key, file, sources in keys.entries(
            keys.Tree(root), os.path.join(root, "build-x"), common)}

    def changed(self, before):
        after = self.keys()
        return sorted(file for file in after if after[file] != before[file])

    def test_each_compiled_file_names_the_sources_in_it(self):
        found = {file: sources for file, (_, sources) in self.keys().items()}
        self.assertEqual(found, {UNITY: ["log/a.cc", "log/b.cc"],
                                 "log/c.cc": ["log/c.cc"]})

    def test_what_is_included_at_any_depth_changes_the_key(self):
        for path in ("log/a.cc", "log/b.cc", "log/a.h",
                     "api/include/alpheus/public.h"):
            with self.subTest(path=path):
                before = self.keys()
                self.write(path, FILES[path] + "// changed\n")
                self.assertEqual(self.changed(before), [UNITY])

    def test_what_is_not_included_does_not(self):
        before = self.keys()
        self.write("log/foreign.h", "// changed\n")
        self.assertEqual(self.changed(before), [])

    def test_flags_and_checks_change_all_keys(self):
        before = self.keys()
        self.make_build(self.root, "-O1")
        self.assertEqual(self.changed(before), [UNITY, "log/c.cc"])
        before = self.keys()
        for file, (key, _) in self.keys(common="others").items():
            self.assertNotEqual(key, before[file][0])

    def test_another_clone_has_the_same_keys(self):
        with tempfile.TemporaryDirectory() as other:
            for path, text in FILES.items():
                self.write(path, text, other)
            self.make_build(other, "-O0")
            self.assertEqual(self.keys(other), self.keys())


if __name__ == "__main__":
    unittest.main()
