# SPDX-License-Identifier: Apache-2.0
"""smoke: what the benchmarks' smoke tests have in common.

Idea: a program measures hardly anything, once for all cases of a test; they
look at its result, and at what the report makes of it.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "bench", "plots", "report.py")


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          **options)


def plotting_python():
    """Debian's interpreter if it has matplotlib, else the one that runs."""
    for python in ("/usr/bin/python3", sys.executable):
        if run(python, "-c", "import matplotlib").returncode == 0:
            return python
    return sys.executable


def content_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tell_skipped(what):
    """Prints what is not tested, where `tools/dev test` looks for it."""
    print("\nskipped: " + what, flush=True)


class SmokeCase(unittest.TestCase):
    """`data` is the result of the program with --tiny and `arguments`."""

    program = None  # the path
    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "result.json")
        cls.ran = run(cls.program, "--tiny", *cls.arguments, "--json", cls.path)
        if cls.ran.returncode == 0:
            cls.data = json.loads(content_of(cls.path))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.assertEqual(self.ran.returncode, 0, self.ran.stderr)

    def skipTest(self, reason):
        tell_skipped(reason)
        super().skipTest(reason)


def main():
    """Runs the tests of the program that the first argument names."""
    SmokeCase.program = sys.argv.pop(1)
    unittest.main()
