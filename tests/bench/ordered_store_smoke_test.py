#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every scenario of bench_ordered_store with hardly any changes, and the
report.

Goal: that all of it works; no figure is judged. Checks that every scenario
measured each candidate with each number of threads, that nothing is exposed
beyond its bound, that the tables are there and that the figures are drawn, the
same twice. Without matplotlib the figures are skipped in sight.

usage: ordered_store_smoke_test.py BENCH_ORDERED_STORE
"""

import json
import os
import sys

sys.dont_write_bytecode = True
import smoke  # noqa: E402
from smoke import REPORT, plotting_python, run  # noqa: E402

SCENARIOS = ("zipfian", "uniform", "commit")
LOGS = {"alpheus", "alpheus-freq8", "alpheus-freq16", "alpheus-group128",
        "query-fresh-group128"}
THREADS = {1, 2, 4, 8}


class SmokeTest(smoke.SmokeCase):

    def pairs(self, scenario, metric):
        return {(m["candidate"], m["parameters"]["threads"])
                for m in self.data["measurements"]
                if m["scenario"] == scenario and m["metric"] == metric}

    def test_everything_was_measured(self):
        of_logs = {(log, n) for log in LOGS for n in THREADS}
        for metric in ("p50", "p99", "exposed", "exposed max"):
            self.assertEqual(self.pairs("commit", metric), of_logs)
        for scenario in ("zipfian", "uniform"):
            self.assertEqual(self.pairs(scenario, "throughput"),
                             of_logs | {("unlogged", n) for n in THREADS})
        for m in self.data["measurements"]:
            self.assertEqual(len(m["samples"]), self.data["rounds"])
            if not m["metric"].startswith("exposed"):
                self.assertGreater(m["min"], 0, m)

    def test_exposure_keeps_its_bound(self):
        for m in self.data["measurements"]:
            if m["metric"] == "exposed max":
                self.assertLessEqual(m["max"], m["details"]["bound"], m)

    def test_use_by_others_is_told_for_each_scenario(self):
        self.assertEqual([d["scenario"] for d in self.data["disturbances"]],
                         list(SCENARIOS))

    def test_report_judges_and_draws_the_same_twice(self):
        figures = []
        for name in ("once", "again"):
            folder = os.path.join(self.folder.name, name)
            told = run(plotting_python(), "-B", REPORT, self.path, folder)
            self.assertEqual(told.returncode, 0, told.stderr)
            for part in ("Read-modify-writes, zipfian",
                         "Read-modify-writes, uniform", "until it is durable",
                         "written and not durable",
                         "Claims of the Arcadia paper"):
                self.assertIn(part, told.stdout)
            if "skipped: plots" in told.stdout:
                self.skipTest("figures: no matplotlib "
                              "(Debian: python3-matplotlib)")
            drawn = []
            for figure in ("10a", "10b"):
                path = os.path.join(folder, "figure_%s.svg" % figure)
                with open(path, encoding="utf-8") as file:
                    drawn.append(file.read())
                self.assertIn("<svg", drawn[-1])
            figures.append(drawn)
        self.assertEqual(figures[0], figures[1])

    def test_only_one_scenario_skips_the_others_in_sight(self):
        path = os.path.join(self.folder.name, "only.json")
        ran = run(self.program, "--tiny", "--only", "commit", "--json", path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual({m["scenario"] for m in data["measurements"]},
                         {"commit"})
        self.assertEqual([s["scenario"] for s in data["skips"]],
                         ["zipfian", "uniform"])
        told = run(plotting_python(), "-B", REPORT, path, self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("skipped: zipfian", told.stdout)
        self.assertIn("not measured in this run", told.stdout)

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
        ran = run(self.program, "--tiny", "--only", "commit", "--json",
                  "/nowhere/ordered_store.json")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/nowhere/ordered_store.json", ran.stderr)


if __name__ == "__main__":
    smoke.main()
