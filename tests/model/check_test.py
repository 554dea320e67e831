#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tests/model/check.py: what it calls wrong, without running spin."""

import contextlib
import importlib.util
import io
import os
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
FOLDER = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location(
    "check", os.path.join(FOLDER, "check.py"))
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)

SOUND = check.sound("sound", "LSNS=1")
WEAK = check.weak("WEAK", "OPENINGS=3")


def result(violated, complete):
    return check.Result(violated, complete, 1, 2, 3, 4.0, 5.0)


class CheckTest(unittest.TestCase):

    def test_verdicts(self):
        for configuration, violated, complete, right in (
                (SOUND, False, True, True), (SOUND, True, False, False),
                (SOUND, False, False, False), (WEAK, True, False, True),
                (WEAK, False, True, False), (WEAK, False, False, False)):
            with self.subTest(name=configuration.name, violated=violated,
                              complete=complete):
                outcome = result(violated, complete)
                self.assertEqual(
                    check.is_as_it_must_be(configuration, outcome), right)
                self.assertEqual(
                    "WRONG" in check.verdict(configuration, outcome),
                    not right)

    def test_wrong_ones_are_named(self):
        with mock.patch.object(check, "search",
                               return_value=result(False, True)), \
                contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(check.check([SOUND, WEAK], False), ["WEAK"])
        self.assertIn("1 of 2 as they must be", printed.getvalue())

    def test_exit_status_says_wrong_or_skipped(self):
        for which, wrong, status in (("/usr/bin/spin", ["WEAK"], 1),
                                     ("/usr/bin/spin", [], 0),
                                     (None, [], check.SKIPPED)):
            with self.subTest(status=status), \
                    mock.patch.object(sys, "argv", ["check.py"]), \
                    mock.patch.object(check.shutil, "which",
                                      return_value=which), \
                    mock.patch.object(check, "check", return_value=wrong), \
                    contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(check.main(), status)
                self.assertEqual("skipped" in printed.getvalue(),
                                 which is None)

    def test_names_select_and_unknown_ones_are_refused(self):
        names = [configuration.name for configuration in
                 check.select(["resync", "NO_EPOCH_TABLE"], quick=False)]
        self.assertEqual(names, ["resync", "NO_EPOCH_TABLE"])
        self.assertEqual(check.select([], quick=False),
                         list(check.CONFIGURATIONS))
        with self.assertRaises(SystemExit):
            check.select(["nothing"], quick=False)

    def test_output_without_a_number_is_an_error(self):
        self.assertEqual(check.number(r"(\d+) states", "12 states"), 12)
        with self.assertRaises(SystemExit):
            check.number(r"(\d+) states", "spin: error")


if __name__ == "__main__":
    unittest.main()
