#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_rocksdb in its smallest form and judges and draws the result.
Checks shape and counts, never times.

usage: rocksdb_smoke_test.py BENCH_ROCKSDB
"""

import json
import os
import sys

sys.dont_write_bytecode = True
import smoke  # noqa: E402
from smoke import REPORT, content_of, plotting_python, run  # noqa: E402

# Without what needs a disk, which is not everywhere.
PLACES = {"none", "floor", "default-tmpfs", "flex", "alpheus",
          "alpheus-1-backup", "alpheus-2-backups"}
METRICS = {"p50", "p99", "p99.9", "mean", "throughput"}


class SmokeTest(smoke.SmokeCase):

    # All in memory: a synced put on a disk takes what it takes.
    arguments = ("--disk", "/dev/shm")

    def of(self, scenario):
        return [m for m in self.data["measurements"]
                if m["scenario"] == scenario]

    def test_every_combination_is_measured(self):
        self.assertEqual(self.data["benchmark"], "rocksdb")
        seen = [(m["candidate"], m["metric"]) + tuple(
            m["parameters"][name] for name in ("random", "sync", "threads"))
            for m in self.of("put")]
        self.assertEqual(len(seen), len(set(seen)))
        expected = {(a, b, c, d, e) for a in PLACES for b in METRICS
                    for c in (0, 1) for d in (0, 1) for e in (1, 2)}
        expected |= {("append-1-backup", b, c, 1, 1) for b in METRICS
                     for c in (0, 1)}
        self.assertEqual(set(seen), expected)
        for m in self.of("put"):
            self.assertEqual(len(m["samples"]), self.data["rounds"])

    def test_all_puts_of_a_killed_process_are_recovered_in_every_place(self):
        self.assertEqual({m["candidate"] for m in self.of("recovery")},
                         PLACES - {"none", "floor"})
        for m in self.of("recovery"):  # the program counts the keys
            self.assertGreater(m["min"], 0)

    def test_disk_that_is_none_is_skipped_in_sight(self):
        self.assertEqual({(skip["scenario"], skip["what"])
                          for skip in self.data["skips"]},
                         {("put", "default-disk"),
                          ("recovery", "default-disk")})

    def test_report_judges_and_draws_the_same_twice(self):
        figures = []
        for name in ("once", "again"):
            folder = os.path.join(self.folder.name, name)
            told = run(plotting_python(), "-B", REPORT, self.path, folder)
            self.assertEqual(told.returncode, 0, told.stderr)
            for part in ("Time of a put, p50", "Cost of the WAL alone",
                         "Thousand puts/s", "the death of a process", "Aims:",
                         "Claims of the Arcadia paper"):
                self.assertIn(part, told.stdout)
            if "skipped: plots" in told.stdout:
                self.skipTest("figures: no matplotlib "
                              "(Debian: python3-matplotlib)")
            figures.append([content_of(os.path.join(
                folder, "figure_rocksdb_%s.svg" % figure))
                            for figure in ("9", "cost", "recovery")])
        self.assertIn("<svg", figures[0][0])
        self.assertEqual(figures[0], figures[1])

    def test_report_on_one_scenario_only(self):
        for scenario in ("put", "recovery"):
            path = self.path + "." + scenario
            self.assertEqual(run(
                self.program, "--tiny", "--disk", "/dev/shm", "--threads", "1",
                "--rounds", "1", "--only", scenario, "--json",
                path).returncode, 0)
            told = run(plotting_python(), "-B", REPORT, path,
                       self.folder.name)
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertIn("all of it: not asked for", told.stdout)

    def test_wals_that_are_named_are_measured_alone(self):
        path = self.path + ".wals"
        self.assertEqual(run(
            self.program, "--tiny", "--disk", "/dev/shm", "--threads", "1",
            "--only", "put", "--wals", "alpheus,append-1-backup",
            "--json", path).returncode, 0)
        data = json.loads(content_of(path))
        self.assertEqual({m["candidate"] for m in data["measurements"]},
                         {"alpheus", "append-1-backup"})
        self.assertEqual({skip["what"] for skip in data["skips"]
                          if skip["scenario"] == "put"},
                         (PLACES | {"default-disk"}) - {"alpheus"})
        told = run(plotting_python(), "-B", REPORT, path, self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("Time of a put, p50", told.stdout)

    def test_bad_usage_is_refused(self):
        for arguments in ([], ["--json"], ["--json", "f", "--only", "nothing"],
                          ["--json", "f", "--quick", "--tiny"],
                          ["--json", "f", "--wals", "none,nowhere"],
                          ["backup", "floor", "/dev/shm", "1"],
                          ["fill"], ["fill", "flex", "/dev/shm", "1"],
                          ["fill", "nothing", "/dev/shm", "0",
                           self.folder.name, "1", "1"],
                          ["fill", "default", "/dev/shm", "0",
                           self.folder.name, "many", "1"]):
            self.assertNotEqual(run(self.program, *arguments).returncode, 0,
                                arguments)

    def test_result_that_cannot_be_written_is_reported(self):
        ran = run(self.program, "--tiny", "--only", "recovery", "--disk",
                  "/dev/shm", "--json", "/nowhere/rocksdb.json")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/nowhere/rocksdb.json", ran.stderr)


if __name__ == "__main__":
    smoke.main()
