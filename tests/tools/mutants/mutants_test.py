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
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
SPEC = importlib.util.spec_from_file_location(
    "mutants", os.path.join(ROOT, "tools", "mutants", "mutants.py"))
mutants = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)
simulation = mutants.simulation
weave = mutants.weave

PROGRAM = """#!/bin/sh
if [ "$1" = "--gtest_filter=Nothing" ]; then exit 0; fi
echo "[ RUN      ] Suite.Name"
case $ALPHEUS_MUTANT in
  kFails) echo "[  FAILED  ] Suite.Name (0 ms)"; exit 1 ;;
  kAsserts) echo "a_test.cc:1: Failure"; kill -ABRT $$ ;;
  kChecks) echo "a.cc:1: check failed: a < b: RL1 (a.h)"; kill -ABRT $$ ;;
  kDies) kill -ABRT $$ ;;
  kSpins) while :; do :; done ;;
  kWaits) exec tail -f /dev/null ;;
esac
"""

# The output of `alpheus-sim`, by mutant; without a mutant each canary is seen.
SIMULATOR = """#!/bin/sh
seeds='{"seeds": 3, "violated": 1}'
says() { echo '{"seed": 3, "invariant": "'"$1"'", "what": "'"$2"'"}'; }
case $ALPHEUS_MUTANT in
  kSeen) says P-C1 lost; echo "$seeds"; exit 1 ;;
  kSeenOtherwise) says P-C8 closed; echo "$seeds"; exit 1 ;;
  kCrashes) says CRASH "signal 11"; echo "$seeds"; exit 1 ;;
  kChecks) says CHECK "a.cc:1: check failed: a < b: RL2 (ring_log.h)"
    echo "$seeds"; exit 1 ;;
  kDies) kill -ABRT $$ ;;
  kSurvives) echo '{"seeds": 20, "violated": 0}' ;;
  "") case "$*" in
        *early-durable*) says P-INV-22 few ;;
        *lost-fences*) if [ -e "$0.dead" ]; then seeds='{"seeds": 20}'
                       else says P-L11 gone; fi ;;
        *no-budget*) says P-INV-3 fork ;;
        *small-core*) says P-C8 stuck ;;
        *deaf-tail*) says P-C2 gap ;;
        *trusted-client*) says P-H17 served ;;
        *old-quorum*) says P-INV-22 fewer ;;
        *bad-repair*) says P-A8 other ;;
        *wrong-platform*) says P-INV-22 unflushed ;;
        *idle-sync*) says WST1 unsynced ;;
        *early-switch*) says WST2 unwritten ;;
        esac
        echo "$seeds" ;;
esac
"""


def entry(name, test="a_test:Suite.Name"):
    return weave.Mutant(name, "P-L5", "what", test, [], "")


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

    def write_simulator(self):
        self.simulator = os.path.join(self.folder, "bin", "alpheus-sim")
        with open(self.simulator, "w", encoding="utf-8") as script:
            script.write(SIMULATOR)
        os.chmod(self.simulator, 0o700)

    def write_table(self, text):
        path = os.path.join(self.folder, "table")
        with open(path, "w", encoding="utf-8") as table:
            table.write(text)
        return path

    def run_simulator(self, text):
        self.write_simulator()
        table = simulation.read_table(self.write_table(text))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            failed = simulation.kill_all(self.folder, 2, table, 20)
        return failed, printed.getvalue()

    def test_seeds_kill_by_an_invariant_of_the_mutants_own(self):
        failed, printed = self.run_simulator("""# comment
kSeen P-C2,P-C1
kChecks ring_log.h:RL2 --nodes 1
""")
        self.assertFalse(failed, printed)
        self.assertRegex(printed, "kSeen +killed +3 seeds .* P-C1: lost")
        self.assertRegex(printed, "kChecks +killed")
        self.assertIn("canary early-durable: seen by P-INV-22", printed)
        self.assertIn("2/2 killed, after 3 seeds in the median", printed)

    def test_other_ends_are_no_kills(self):
        for name in ("kSeenOtherwise", "kCrashes", "kDies", "kSurvives",
                     "kChecks"):
            with self.subTest(name=name):
                failed, printed = self.run_simulator(f"{name} P-C1\n")
                self.assertTrue(failed)
                self.assertRegex(printed, f"{name} +(OTHERWISE|SURVIVED)")
                self.assertIn("0/1 killed", printed)

    def test_canary_that_is_not_seen_fails_the_run(self):
        self.write_simulator()
        with open(self.simulator + ".dead", "w", encoding="utf-8"):
            pass
        failed, printed = self.run_simulator("kSeen P-C1\n")
        self.assertTrue(failed)
        self.assertIn("canary lost-fences: NOT seen", printed)
        self.assertNotIn("kSeen", printed)

    def test_crash_is_no_invariant_of_the_table(self):
        for text in ("kA P-C1,CRASH\n", "kA\n", "P-C1 kA\n"):
            with self.subTest(text=text), self.assertRaises(SystemExit):
                simulation.read_table(self.write_table(text))

    def test_simulated_mutants_are_in_the_table(self):
        names = {mutant.name for mutant in weave.read_tables()}
        simulated = [entry.name for entry in simulation.read_table()]
        self.assertLessEqual(set(simulated), names)
        self.assertEqual(len(simulated), len(set(simulated)))
        self.assertGreaterEqual(len(simulated), 60)

    def run_test(self, test, name, *seconds):
        return mutants.run_test(self.folder, test, name, *seconds or [60])

    def test_outcomes_are_told_apart(self):
        for name, how in (("", ""), ("kOther", ""), ("kFails", "failed"),
                          ("kAsserts", "failed"), ("kChecks", "failed"),
                          ("kDies", "died")):
            with self.subTest(name=name):
                outcome = self.run_test("a_test:Suite.Name", name)
                self.assertEqual(outcome.how, how)
                self.assertEqual(outcome.killed_by, "Suite.Name" if how else "")

    def test_program_that_spins_is_ended(self):
        outcome = self.run_test("a_test:Suite.Name", "kSpins", 1)
        self.assertEqual(outcome.how, "hung")

    def test_program_that_only_waits_is_ended_and_kills_nothing(self):
        outcome = self.run_test("a_test:Suite.Name", "kWaits", 60, 0.5)
        self.assertEqual(outcome.how, "waits")
        self.addCleanup(setattr, mutants, "run_test", mutants.run_test)
        mutants.run_test = lambda *_: outcome
        _, killed, printed = self.run_all([entry("kWaits")], False)
        self.assertEqual(killed, 0)
        self.assertRegex(printed, r"kWaits .* SURVIVED .* \(waits\)")

    def test_filter_without_a_test_is_no_pass(self):
        self.assertIn("ran nothing",
                      self.run_test("a_test:Nothing", "").killed_by)

    def test_program_that_runs_no_test_kills_nothing(self):
        _, killed, printed = self.run_all([entry("kFails", "a_test:Nothing")],
                                          False)
        self.assertEqual(killed, 0)
        self.assertRegex(printed, r"kFails .* SURVIVED .* ran nothing \(idle\)")

    def run_all(self, entries, with_unmutated=True):
        run = mutants.Run(self.folder, 2, entries)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            passed = not with_unmutated or run.unmutated_tests_pass()
            killed = run.kill_all(verbose=False)
        return passed, killed, printed.getvalue()

    def test_survivor_is_told_and_not_counted(self):
        passed, killed, printed = self.run_all(
            [entry("kFails"), entry("kSurvives")])
        self.assertTrue(passed)
        self.assertEqual(killed, 1)
        self.assertRegex(printed, "kFails +P-L5 +killed .* Suite.Name")
        self.assertRegex(printed, "kSurvives +P-L5 +SURVIVED .* no test")

    def test_test_that_fails_unmutated_stops_the_run(self):
        passed, _, printed = self.run_all([entry("kFails", "a_test:Nothing")])
        self.assertFalse(passed)
        self.assertIn("must pass without a mutant", printed)

    def test_names_and_holes_select(self):
        table = [entry("kA"), entry("kB"), entry("kC")._replace(hole="P-F1")]
        self.assertEqual(mutants.select(table, ["P-L5"]), table[:2])
        self.assertEqual(mutants.select(table, ["kC", "kA"]),
                         [table[0], table[2]])
        with self.assertRaises(SystemExit):
            mutants.select(table, ["kD"])

    def test_table_covers_every_hole_of_one_node(self):
        holes = {mutant.hole for mutant in weave.read_tables()}
        for hole in ("P-H7 P-H9 P-H10 P-H11 P-H13 P-H14 P-S1 P-S2 P-S3 P-L1 "
                     "P-L2 P-L3 P-L4 P-L5 P-L6 P-L8 P-L10 P-L11 P-L12 P-F1 "
                     "P-F2 P-F3 P-F4 P-F5 P-F6 P-F7 P-A1 P-A2 P-A3.1 P-A3.2 "
                     "P-A3.3 P-A3.5 P-A3.6").split():
            self.assertIn(hole, holes)


if __name__ == "__main__":
    unittest.main()
