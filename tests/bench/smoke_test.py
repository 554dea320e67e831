#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every scenario of bench_local with hardly any records, and the report.

Goal: that all of it works; no figure is judged. Checks the shape of the JSON,
that every scenario measured, that the tables are there, that the figures are
drawn and that the same result gives the same figures, byte by byte. Without
matplotlib the figures are skipped in sight.

usage: smoke_test.py BENCH_LOCAL
"""

import hashlib
import json
import os
import sys

sys.dont_write_bytecode = True
import smoke  # noqa: E402
from smoke import REPORT, plotting_python, run  # noqa: E402

FIGURES = ("5a", "5b", "5c", "5d", "7a", "8a", "8b", "8c", "8d")
SCENARIOS = ("append", "threads", "policies", "frequencies", "stages",
             "tenants", "recovery", "opening")
MEASUREMENT_KEYS = {"scenario", "candidate", "metric", "unit", "parameters",
                    "median", "min", "max", "samples", "details"}


class SmokeTest(smoke.SmokeCase):

    def test_every_scenario_measured(self):
        seen = {m["scenario"] for m in self.data["measurements"]}
        self.assertEqual(seen, set(SCENARIOS))

    def test_measurements_have_their_shape(self):
        self.assertEqual(self.data["schema_version"], 1)
        self.assertGreater(len(self.data["machine"]["cores"]), 0)
        for m in self.data["measurements"]:
            self.assertEqual(set(m), MEASUREMENT_KEYS)
            self.assertGreater(len(m["samples"]), 0)
            self.assertLessEqual(m["min"], m["median"])
            self.assertLessEqual(m["median"], m["max"])
            self.assertGreaterEqual(m["min"], 0, m)

    def test_exposure_keeps_its_bound(self):
        self.assertGreater(len(self.data["distributions"]), 0)
        for d in self.data["distributions"]:
            self.assertGreater(sum(d["counts"]), 0)
            self.assertLessEqual(len(d["counts"]) - 1,
                                 d["parameters"]["bound"], d)

    def test_cache_misses_are_counted_or_skipped_in_sight(self):
        for kind in ("L1d read misses", "last-level misses"):
            counted = any(m["metric"] == kind
                          for m in self.data["measurements"])
            skips = [s for s in self.data["skips"] if s["what"] == kind]
            self.assertEqual(counted, not skips)
            for skip in skips:
                self.assertNotEqual(skip["why"], "")

    def test_report_judges_and_draws_the_same_twice(self):
        python = plotting_python()
        hashes = []
        for name in ("once", "again"):
            folder = os.path.join(self.folder.name, name)
            told = run(python, "-B", REPORT, self.path, folder)
            self.assertEqual(told.returncode, 0, told.stderr)
            for part in ("Append, one thread", "Threads on one log",
                         "Force policies", "Stages of one append",
                         "a thread and a log each", "Recovery of a log",
                         "Aims", "Claims of the Arcadia paper"):
                self.assertIn(part, told.stdout)
            if "skipped: plots" in told.stdout:
                self.skipTest("figures: no matplotlib "
                              "(Debian: python3-matplotlib)")
            hashes.append(self.hash_figures(told.stdout, folder))
        self.assertEqual(hashes[0], hashes[1])

    def hash_figures(self, told, folder):
        hashes = {}
        for name in FIGURES:
            path = os.path.join(folder, "figure_%s.svg" % name)
            if os.path.exists(path):
                with open(path, "rb") as file:
                    content = file.read()
                self.assertIn(b"<svg", content)
                hashes[name] = hashlib.sha256(content).hexdigest()
            else:
                self.assertIn("skipped: figure " + name, told)
        self.assertGreaterEqual(len(hashes), len(FIGURES) - 1)
        return hashes

    def test_only_one_scenario_skips_the_others_in_sight(self):
        path = os.path.join(self.folder.name, "only.json")
        ran = run(self.program, "--tiny", "--only", "stages", "--json", path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual({m["scenario"] for m in data["measurements"]},
                         {"stages"})
        self.assertEqual({s["scenario"] for s in data["skips"]},
                         set(SCENARIOS) - {"stages"})

    def test_bad_usage_is_refused(self):
        for arguments in ([], ["--json"], ["--json", "f", "--only", "nothing"],
                          ["--json", "f", "--rounds", "0"],
                          ["--json", "f", "--quick", "--tiny"],
                          ["--json", "f", "--dir", "/nowhere"]):
            self.assertNotEqual(run(self.program, *arguments).returncode, 0,
                                arguments)

    def test_folder_that_is_no_persistent_memory_is_refused(self):
        ran = run(self.program, "--tiny", "--dir", "/proc", "--json",
                  self.path + "x")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/proc", ran.stderr)

    def test_result_that_cannot_be_written_is_reported(self):
        ran = run(self.program, "--tiny", "--only", "stages", "--json",
                  "/nowhere/local.json")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/nowhere/local.json", ran.stderr)


if __name__ == "__main__":
    smoke.main()
