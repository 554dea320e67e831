#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_failover in its smallest form and judges and draws the result.
Checks shape and counts, and times only against times that are settings.

usage: failover_smoke_test.py BENCH_FAILOVER
"""

import json
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PLOTS = os.path.join(ROOT, "bench", "plots")
sys.path.insert(0, PLOTS)

import failover  # noqa: E402
import results  # noqa: E402
import smoke  # noqa: E402
from smoke import (REPORT, content_of, plotting_python, run,  # noqa: E402
                   tell_skipped)

PEERS = {"etcd", "etcd, silence as ours", "redis, silence as ours"}
FLOOR_PARTS = set(failover.PARTS) - {"choice"}
SILENCE_MS = 150


class SmokeTest(smoke.SmokeCase):

    def of(self, scenario, candidate):
        return [m for m in self.data["measurements"]
                if (m["scenario"], m["candidate"]) == (scenario, candidate)]

    def test_every_fault_is_measured(self):
        self.assertEqual(self.data["benchmark"], "failover")
        self.assertEqual(self.data["schema_version"], results.SCHEMA_VERSION)
        self.assertEqual({m["scenario"] for m in self.data["measurements"]},
                         set(failover.SCENARIOS))

    def test_log_and_floor_are_measured_part_by_part(self):
        for scenario in failover.SCENARIOS:
            seen = {(m["metric"], m["parameters"]["log_mib"])
                    for m in self.of(scenario, "alpheus")}
            self.assertEqual(seen, {
                (part, mib) for mib in (2, 4)
                for part in failover.PARTS + ("total", failover.FAILED)})
            self.assertEqual({m["metric"] for m in self.of(scenario, "floor")},
                             FLOOR_PARTS | {"total"})

    def test_rounds_that_were_begun_again_are_counted(self):
        for m in self.data["measurements"]:
            self.assertGreaterEqual(m["details"]["begun_again"], 0, m)

    def test_parts_make_up_the_total(self):
        for scenario in failover.SCENARIOS:
            for who in ("alpheus", "floor"):
                for mib in (2, 4):
                    of = {m["metric"]: m["samples"]
                          for m in self.of(scenario, who)
                          if m["parameters"]["log_mib"] == mib}
                    for i, total in enumerate(of.get("total", ())):
                        parts = [of[part][i] for part in failover.PARTS
                                 if part in of]
                        self.assertAlmostEqual(sum(parts), total, places=3)
                        self.assertGreaterEqual(min(parts), 0)

    def test_rounds_are_as_asked(self):
        for m in self.data["measurements"]:
            big = (m["candidate"] in ("alpheus", "floor")
                   and m["parameters"]["log_mib"] == 2)
            self.assertEqual(len(m["samples"]), 2 if big else 1, m)

    def test_silence_is_waited_for(self):
        # It counts from the primary's last word, which comes earlier than the
        # fault where the machine is busy: not so in each round.
        for scenario in ("stop", "cut"):
            for m in self.of(scenario, "floor"):
                if m["metric"] == "total":
                    self.assertGreaterEqual(m["max"], SILENCE_MS / 2)

    def test_peers_are_measured_or_skipped_with_a_reason(self):
        for scenario in failover.SCENARIOS:
            who = {m["candidate"] for m in self.data["measurements"]
                   if m["scenario"] == scenario} - {"alpheus", "floor"}
            skipped = {s["what"]: s["why"] for s in self.data["skips"]
                       if s["scenario"] == scenario}
            self.assertEqual(who | set(skipped), PEERS)
            self.assertFalse(who & set(skipped))
            for name, why in skipped.items():
                if scenario != "cut":
                    tell_skipped("%s, %s: %s" % (scenario, name, why))
            self.assertTrue(scenario != "cut" or not who)

    def test_peer_that_is_not_installed_is_skipped_in_sight(self):
        path = os.path.join(self.folder.name, "no_peers.json")
        ran = run(self.program, "--tiny", "--rounds", "1", "--only", "drain",
                  "--sizes", "2", "--json", path,
                  env=dict(os.environ, PATH="/nowhere"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        told = run(sys.executable, "-B", REPORT, path, self.folder.name)
        for name in PEERS:
            self.assertIn("skipped: drain, %s:" % name, told.stdout)
        self.assertIn("skipped: kill, all of it: not asked for", told.stdout)
        with open(path, encoding="utf-8") as file:
            self.assertEqual({m["candidate"]
                              for m in json.load(file)["measurements"]},
                             {"floor", "alpheus"})

    def test_report_judges_and_draws(self):
        told = run(plotting_python(), "-B", REPORT, self.path,
                   self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        for part in ("After SIGKILL of the primary", "After SIGSTOP",
                     "the primary cut off", "drained by an operator", "Aims",
                     "skipped  SIGKILL of the primary, 64 MiB",
                     "preset tiny"):
            self.assertIn(part, told.stdout)
        if "skipped: plots" in told.stdout:
            self.skipTest("figures: no matplotlib "
                          "(Debian: python3-matplotlib)")
        for name in ("parts", "totals"):
            self.assertIn("<svg", content_of(os.path.join(
                self.folder.name, "figure_failover_%s.svg" % name)))

    def test_bad_usage_is_refused(self):
        for arguments in ([], ["--json"], ["--json", "f", "--rounds", "0"],
                          ["--json", "f", "--sizes", "0"],
                          ["--json", "f", "--only", "nothing"],
                          ["node", "/nowhere", "1", "many"],
                          ["nothing", "/dev/shm", "1", "2"],
                          ["floor-primary"], ["floor-primary", "x"],
                          ["floor-node", "1"], ["floor-nothing"],
                          ["program", "/nowhere", "1", "2"]):
            self.assertNotEqual(run(self.program, *arguments).returncode, 0,
                                arguments)

    def test_process_that_cannot_start_is_reported(self):
        ran = run(self.program, "--tiny", "--dir", "/proc", "--json",
                  self.path + "x")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/proc", ran.stderr)


if __name__ == "__main__":
    smoke.main()
