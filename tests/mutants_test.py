#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/mutants/mutants.py with programs that only pretend to be tests.

Each pretended program is a shell script that prints what GoogleTest would, and
ends as its filter and ALPHEUS_MUTANT say.
"""

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPEC = importlib.util.spec_from_file_location(
    "mutants", os.path.join(ROOT, "tools", "mutants", "mutants.py"))
mutants = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)

PROGRAM = """#!/bin/sh
if [ "$1" = "--gtest_filter=Nothing" ]; then exit 0; fi
echo "[ RUN      ] Suite.Name"
case $ALPHEUS_MUTANT in
  kFails) echo "[  FAILED  ] Suite.Name (0 ms)"; exit 1 ;;
  kAsserts) echo "a_test.cc:1: Failure"; kill -ABRT $$ ;;
  kChecks) echo "a.cc:1: check failed: a < b: I1 (a.h)"; kill -ABRT $$ ;;
  kDies) kill -ABRT $$ ;;
  kHangs) exec tail -f /dev/null ;;
esac
"""


def entry(name, test="a_test:Suite.Name"):
    return mutants.Mutant(name, "L5", "what", test)


class MutantsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "bin"))
        program = os.path.join(self.folder, "bin", "a_test")
        with open(program, "w", encoding="utf-8") as script:
            script.write(PROGRAM)
        os.chmod(program, 0o700)

    def run_test(self, test, name, seconds=60):
        return mutants.run_test(self.folder, test, name, seconds)

    def test_outcomes_are_told_apart(self):
        for name, how in (("", ""), ("kOther", ""), ("kFails", "failed"),
                          ("kAsserts", "failed"), ("kChecks", "failed"),
                          ("kDies", "died")):
            with self.subTest(name=name):
                outcome = self.run_test("a_test:Suite.Name", name)
                self.assertEqual(outcome.how, how)
                self.assertEqual(outcome.killed_by, "Suite.Name" if how else "")

    def test_program_that_hangs_is_ended(self):
        outcome = self.run_test("a_test:Suite.Name", "kHangs", seconds=0.5)
        self.assertEqual(outcome.how, "hung")

    def test_filter_without_a_test_is_no_pass(self):
        self.assertIn("ran nothing",
                      self.run_test("a_test:Nothing", "").killed_by)

    def run_all(self, entries):
        run = mutants.Run(self.folder, 2, entries)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            passed = run.unmutated_tests_pass()
            killed = run.kill_all(verbose=False)
        return passed, killed, printed.getvalue()

    def test_survivor_is_told_and_not_counted(self):
        passed, killed, printed = self.run_all(
            [entry("kFails"), entry("kSurvives")])
        self.assertTrue(passed)
        self.assertEqual(killed, 1)
        self.assertRegex(printed, "kFails +L5 +killed .* Suite.Name")
        self.assertRegex(printed, "kSurvives +L5 +SURVIVED .* no test")

    def test_test_that_fails_unmutated_stops_the_run(self):
        passed, _, printed = self.run_all([entry("kFails", "a_test:Nothing")])
        self.assertFalse(passed)
        self.assertIn("must pass without a mutant", printed)

    def test_names_and_holes_select(self):
        table = [entry("kA"), entry("kB"), mutants.Mutant("kC", "F1", "", "")]
        self.assertEqual(mutants.select(table, ["L5"]), table[:2])
        self.assertEqual(mutants.select(table, ["kC", "kA"]),
                         [table[0], table[2]])
        with self.assertRaises(SystemExit):
            mutants.select(table, ["kD"])

    def test_table_covers_every_hole_of_one_node(self):
        holes = {mutant.hole for mutant in mutants.read_table()}
        for hole in ("H7 H9 H10 H11 H13 H14 S1 S2 S3 L1 L2 L3 L4 L5 L6 L8 L10 "
                     "L11 L12 F1 F2 F3 F4 F5 F6 F7 A1 A2 A3.1 A3.2 A3.3 A3.5 "
                     "A3.6").split():
            self.assertIn(hole, holes)

    def test_entry_in_another_form_is_refused(self):
        path = os.path.join(self.folder, "table")
        with open(path, "w", encoding="utf-8") as table:
            table.write('ALPHEUS_MUTANT(kA, "L5", what, "a_test:*")\n')
        with self.assertRaises(SystemExit):
            mutants.read_table(path)


if __name__ == "__main__":
    unittest.main()
