#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every scenario of bench_remotelog with hardly any appends, and the
report.

Goal: that all of it works; no finding is asked for. Checks the shape of the
JSON, that all rows were run, that a second run gives the same result, that the
text is there and that the figure is drawn, the same twice. Without matplotlib
the figure is skipped in sight.

usage: remotelog_smoke_test.py BENCH_REMOTELOG
"""

import json
import os
import sys

sys.dont_write_bytecode = True
import smoke  # noqa: E402
from smoke import REPORT, content_of, plotting_python, run  # noqa: E402

GOLDEN_ROWS = os.path.join(smoke.ROOT, "tests", "golden",
                           "remote_persistence_methods.csv")
SCENARIOS = {"append", "clients", "sensitivity"}


class SmokeTest(smoke.SmokeCase):

    def names(self, scenario):
        return {m["candidate"] for m in self.data["measurements"]
                if m["scenario"] == scenario}

    def test_rows_are_those_of_the_tables(self):
        lines = content_of(GOLDEN_ROWS).splitlines()[1:]
        rows = {",".join(line.split(",")[:5]) for line in lines}
        self.assertEqual(len(rows), 72)
        for scenario in ("append", "clients"):
            names = self.names(scenario)
            self.assertEqual({n for n in names
                              if not n.endswith(",estimate")}, rows)
            self.assertEqual(len(names), 74)

    def test_every_scenario_ran(self):
        self.assertEqual({m["scenario"] for m in self.data["measurements"]},
                         SCENARIOS)
        self.assertEqual({c["name"] for c in self.data["constants"]},
                         self.names("sensitivity") - {"all", "wide"})

    def test_second_run_is_the_same(self):
        path = self.path + ".again"
        self.assertEqual(
            run(self.program, "--tiny", "--json", path).returncode, 0)
        again = json.loads(content_of(path))
        self.assertEqual(again["measurements"], self.data["measurements"])

    def test_what_is_missing_is_told(self):
        self.assertEqual([s["scenario"] for s in self.data["skips"]],
                         ["fabric"])
        path = self.path + ".only"
        self.assertEqual(run(self.program, "--tiny", "--only", "append",
                             "--json", path).returncode, 0)
        skips = json.loads(content_of(path))["skips"]
        self.assertEqual({s["scenario"] for s in skips},
                         SCENARIOS - {"append"} | {"fabric"})

    def test_rows_run_over_a_fabric(self):
        path = self.path + ".tcp"
        ran = run(self.program, "--tiny", "--over", "tcp", "--json", path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        data = json.loads(content_of(path))
        self.assertEqual(data["transport"], "tcp")
        self.assertEqual(self.data["transport"], "simulated")
        names = {m["candidate"] for m in data["measurements"]
                 if m["scenario"] == "fabric"}
        skipped = {s["what"] for s in data["skips"]
                   if s["scenario"] == "fabric"}
        self.assertEqual(names | skipped, self.names("append"))
        # No persistent memory was given, and there is no atomic WRITE.
        self.assertEqual(skipped, {
            n for n in self.names("append") if ",pm," in n
            or n == "dmp,off,dram,compound,write"})
        told = run(plotting_python(), "-B", REPORT, path, self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("Over tcp", told.stdout)
        self.assertIn("does not run there: 36 rows", told.stdout)

    def test_verbs_without_adapters_are_refused(self):
        environment = {k: v for k, v in os.environ.items()
                       if k != "ALPHEUS_VERBS_ADDRESSES"}
        ran = run(self.program, "--tiny", "--over", "verbs", "--json",
                  self.path + ".verbs", env=environment)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("ALPHEUS_VERBS_ADDRESSES", ran.stderr)

    def test_report_judges_and_draws_the_same_twice(self):
        figures = []
        for name in ("once", "again"):
            folder = os.path.join(self.folder.name, name)
            told = run(plotting_python(), "-B", REPORT, self.path, folder)
            self.assertEqual(told.returncode, 0, told.stderr)
            for part in ("Costs;", "Appends by each row", "estimate",
                         "Mean us",
                         "Several clients", "Findings of the taxonomy",
                         "Sensitivity", "skipped: fabric"):
                self.assertIn(part, told.stdout)
            if "skipped: plots" in told.stdout:
                self.skipTest("figure: no matplotlib "
                              "(Debian: python3-matplotlib)")
            figures.append(content_of(os.path.join(
                folder, "figure_remotelog.svg")))
        self.assertIn("<svg", figures[0])
        self.assertEqual(figures[0], figures[1])

    def test_report_on_one_scenario_only(self):
        for scenario in SCENARIOS:
            path = self.path + "." + scenario
            self.assertEqual(run(self.program, "--tiny", "--only", scenario,
                                 "--json", path).returncode, 0)
            told = run(plotting_python(), "-B", REPORT, path,
                       self.folder.name)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertIn("skipped: fabric", told.stdout)

    def test_bad_usage_is_refused(self):
        for arguments in ([], ["--json"], ["--json", "f", "--only", "nothing"],
                          ["--json", "f", "--quick", "--tiny"]):
            self.assertNotEqual(run(self.program, *arguments).returncode, 0,
                                arguments)

    def test_result_that_cannot_be_written_is_reported(self):
        ran = run(self.program, "--tiny", "--only", "append", "--json",
                  "/nowhere/remotelog.json")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/nowhere/remotelog.json", ran.stderr)


if __name__ == "__main__":
    smoke.main()
