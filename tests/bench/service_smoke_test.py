#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_service in its smallest form and judges and draws the result.
Checks shape and counts, never times.

usage: service_smoke_test.py BENCH_SERVICE
"""

import json
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PLOTS = os.path.join(ROOT, "bench", "plots")
sys.path.insert(0, PLOTS)

import results  # noqa: E402
import service  # noqa: E402
import smoke  # noqa: E402
from smoke import (REPORT, content_of, plotting_python, run,  # noqa: E402
                   tell_skipped)

SCENARIOS = {"latency", "rate", "streams", "tail", "fan-out", "slow-reader",
             "idle", "metrics"}
PEERS = {"etcd", "redis"}
WITHOUT_PEERS = {"floor-echo", "echo by our client", "floor-embedded",
                 "embedded by callback", "alpheus"}
QUANTILES = {"p50", "p99", "p99.9", "mean"}


class SmokeTest(smoke.SmokeCase):

    def of(self, scenario):
        return [m for m in self.data["measurements"]
                if m["scenario"] == scenario]

    def test_every_scenario_is_measured(self):
        self.assertEqual(self.data["benchmark"], "service")
        self.assertEqual(self.data["schema_version"], results.SCHEMA_VERSION)
        self.assertEqual({m["scenario"] for m in self.data["measurements"]},
                         SCENARIOS)

    def test_loads_have_times_and_rates(self):
        for scenario in ("latency", "rate", "streams"):
            for m in self.of(scenario):
                self.assertIn(m["metric"], QUANTILES | {"rate"})
                self.assertGreater(m["min"], 0, m)
                self.assertEqual(len(m["samples"]), 2, m)

    def test_floors_and_log_are_beside_each_other(self):
        who = {m["candidate"] for m in self.of("latency")}
        self.assertEqual(who - PEERS, WITHOUT_PEERS)
        loads = {(m["parameters"]["bytes"], m["parameters"]["in_flight"])
                 for m in self.of("rate") if m["candidate"] == "alpheus"}
        self.assertEqual(loads, {(64, 1), (64, 64), (16384, 1), (16384, 64)})

    def test_delivery_is_later_than_its_sending(self):
        for scenario in ("tail", "fan-out"):
            self.assertEqual({m["candidate"] for m in self.of(scenario)},
                             {"floor-echo", "alpheus"})
            for m in self.of(scenario):
                if m["metric"] == "from sent p50":
                    self.assertGreater(m["min"], 0, m)

    def test_slow_reader_has_two_equal_turns(self):
        self.assertEqual({m["candidate"] for m in self.of("slow-reader")},
                         {service.ALONE, service.AGAIN, service.BESIDE})

    def test_idle_streams_are_counted(self):
        self.assertEqual({m["candidate"] for m in self.of("idle")},
                         set(service.IDLE_KINDS) | {"floor-echo"})
        for m in self.of("idle"):
            self.assertEqual(m["parameters"], {"streams": 20})

    def test_metrics_have_two_equal_turns_and_are_scraped(self):
        self.assertEqual({m["candidate"] for m in self.of("metrics")},
                         {service.UNSCRAPED, service.UNSCRAPED_AGAIN,
                          service.SCRAPED})
        self.assertEqual({m["parameters"]["in_flight"]
                          for m in self.of("metrics")}, {1, 64})
        scrapes = [m for m in self.of("metrics") if m["metric"] == "scrapes"]
        self.assertEqual({m["candidate"] for m in scrapes}, {service.SCRAPED})
        for m in scrapes:
            self.assertGreaterEqual(m["min"], 3, m)  # of each node once

    def test_peers_are_measured_or_skipped_with_a_reason(self):
        for scenario in ("latency", "rate", "streams"):
            who = {m["candidate"] for m in self.of(scenario)} & PEERS
            skipped = {s["what"]: s["why"] for s in self.data["skips"]
                       if s["scenario"] == scenario and s["what"] in PEERS}
            self.assertEqual(who | set(skipped), PEERS)
            self.assertFalse(who & set(skipped))
            for name, why in skipped.items():
                if scenario == "latency":
                    tell_skipped("%s, %s: %s" % (scenario, name, why))

    def test_load_that_a_contestant_cannot_take_is_skipped_in_sight(self):
        unable = {s["what"]: s["why"] for s in self.data["skips"]
                  if s["scenario"] == "streams" and s["what"] not in PEERS}
        self.assertEqual(unable, {
            name: "measured with one record at a time"
            for name in ("floor-embedded", "embedded by callback")})

    def test_peer_that_is_not_installed_is_skipped_in_sight(self):
        path = os.path.join(self.folder.name, "no_peers.json")
        ran = run(self.program, "--tiny", "--rounds", "1", "--only", "latency",
                  "--json", path, env=dict(os.environ, PATH="/nowhere"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        told = run(sys.executable, "-B", REPORT, path, self.folder.name)
        for name in PEERS:
            self.assertIn("skipped: latency, %s:" % name, told.stdout)
        self.assertIn("skipped: rate, all of it: not asked for", told.stdout)
        with open(path, encoding="utf-8") as file:
            self.assertEqual({m["candidate"]
                              for m in json.load(file)["measurements"]},
                             WITHOUT_PEERS)

    def test_report_judges_and_draws(self):
        told = run(plotting_python(), "-B", REPORT, self.path,
                   self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        for part in ("One record at a time", "Records under way",
                     "A reader that follows", "stands still",
                     "Streams on which nothing comes", "metrics are scraped",
                     "Aims",
                     "one record of 64 B", "preset tiny"):
            self.assertIn(part, told.stdout)
        if "skipped: plots" in told.stdout:
            self.skipTest("figures: no matplotlib "
                          "(Debian: python3-matplotlib)")
        for name in ("latency", "rate"):
            self.assertIn("<svg", content_of(os.path.join(
                self.folder.name, "figure_service_%s.svg" % name)))

    def test_bad_usage_is_refused(self):
        for arguments in ([], ["--json"], ["--json", "f", "--rounds", "0"],
                          ["--json", "f", "--only", "nothing"],
                          ["reader"], ["reader", "log", "x", "127.0.0.1:1"],
                          ["echo", "more"]):
            self.assertNotEqual(run(self.program, *arguments).returncode, 0,
                                arguments)

    def test_process_that_cannot_start_is_reported(self):
        ran = run(self.program, "--tiny", "--dir", "/proc", "--json",
                  self.path + "x")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/proc", ran.stderr)


if __name__ == "__main__":
    smoke.main()
