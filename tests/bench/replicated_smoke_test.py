#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_replicated in its smallest form and judges and draws the result.
Checks shape and counts, never times.

usage: replicated_smoke_test.py BENCH_REPLICATED
"""

import copy
import json
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PLOTS = os.path.join(ROOT, "bench", "plots")
sys.path.insert(0, PLOTS)

import replicated  # noqa: E402
import results  # noqa: E402
import smoke  # noqa: E402
from smoke import REPORT, plotting_python, run, tell_skipped  # noqa: E402

METRICS = {"p50", "p99", "p99.9", "mean"}


class SmokeTest(smoke.SmokeCase):

    def of(self, scenario):
        return [m for m in self.data["measurements"]
                if m["scenario"] == scenario]

    def test_what_others_had_of_the_cores_is_told_for_each_scenario(self):
        told = {d["scenario"]: d["share_of_others"]
                for d in self.data["disturbances"]}
        self.assertEqual(set(told),
                         {m["scenario"] for m in self.data["measurements"]})
        for share in told.values():
            self.assertTrue(0 <= share <= 1, told)

    def test_every_combination_is_measured(self):
        self.assertEqual(self.data["benchmark"], "replicated")
        self.assertEqual(self.data["schema_version"], results.SCHEMA_VERSION)
        seen = [(m["candidate"], m["metric"], m["parameters"]["bytes"],
                 m["parameters"]["backups"], m["parameters"]["spin"])
                for m in self.of("latency")]
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(set(seen), {
            (a, b, c, d, e) for a in ("floor", "fabric", "alpheus")
            for b in METRICS for c in (64, 16384)
            for d in (1, 2) for e in (0, 1)})

    def metrics_of(self, scenario, *names):
        return {(m["candidate"], m["metric"])
                + tuple(m["parameters"][name] for name in names)
                for m in self.of(scenario)}

    def test_batches_backups_and_policies_are_measured(self):
        who = {c for c, _, _ in self.metrics_of("batches", "spin")}
        self.assertLessEqual({"floor", "alpheus"}, who)
        self.assertEqual(self.metrics_of("batches", "spin"), {
            (a, b, c) for a in who for b in METRICS for c in (0, 1)})
        self.assertEqual(self.metrics_of("backups", "backups", "quorum"), {
            (a, b) + c for a in ("floor", "alpheus") for b in METRICS
            for c in ((0, 1), (1, 2), (3, 3), (3, 4))})
        self.assertEqual(self.metrics_of("policies"), {
            (a, b) for a in ("alpheus", "alpheus-freq8", "alpheus-freq16",
                             "alpheus-group128", "alpheus-group256")
            for b in METRICS})

    def test_orders_are_measured_with_and_without_clwb(self):
        self.assertEqual(self.metrics_of("order", "clwb", "bytes"), {
            (a, b, c, d) for a in ("remote first", "local first", "parallel")
            for b in METRICS | {"copy", "force"} for c in (0, 1)
            for d in (64, 4096)})

    def test_places_are_measured(self):
        self.assertEqual(self.metrics_of("places", "spin"), {
            (a, b, c) for a in ("local+remote", "remote-only",
                                "remote-only, one copy")
            for b in METRICS for c in (0, 1)})

    def test_recovery_finds_all_records_with_its_copy_and_without(self):
        self.assertEqual(self.metrics_of("recovery"), {
            ("floor", "copy"), ("floor", "pass"), ("floor", "total")} | {
                (a, b) for a in ("own copy", "copy lost")
                for b in ("open", "iterate", "total")})
        for m in self.of("recovery"):
            self.assertGreater(m["details"]["records"], 1900)

    def test_resync_is_measured_beside_a_bare_copy(self):
        seen = self.metrics_of("resync", "mib", "bytes")
        during = {"resync", "floor"}
        self.assertEqual(seen, {
            (a, b, 2, 64) for a in during | {"before " + who for who in during}
            for b in METRICS | {"longest"}} | {
                (a, b, 2, 64) for a in during | {"at rest"}
                for b in ("duration", "rate")})
        for m in self.of("resync"):
            if m["candidate"] != "at rest":
                self.assertGreaterEqual(m["details"]["appends"], 2)

    def test_exposure_keeps_the_bound_of_each_policy(self):
        found = [d for d in self.data["distributions"]
                 if d["scenario"] == "exposure"]
        self.assertEqual(len(found), 10)
        for d in found:
            self.assertLessEqual(len(d["counts"]) - 1,
                                 d["parameters"]["bound"])
            self.assertEqual(sum(d["counts"]), 2 * 2000)

    def test_sums_are_measured_by_size(self):
        self.assertEqual(self.metrics_of("sums", "bytes"), {
            (a, b, c) for a in ("summed", "unsummed") for b in METRICS
            for c in (64, 16384)} | {("cost", "sum", c) for c in (64, 16384)})

    def test_tenants_are_measured(self):
        self.assertEqual(self.metrics_of("tenants", "tenants"), {
            (a, "rate", b) for a in ("floor", "alpheus") for b in (1, 4)})

    def test_peers_are_measured_or_skipped_with_a_reason(self):
        seen = {(m["candidate"], m["metric"], m["parameters"]["spin"])
                for m in self.of("peers")}
        who = {candidate for candidate, _, _ in seen}
        skipped = {s["what"] for s in self.data["skips"]
                   if s["scenario"] == "peers"}
        self.assertEqual(who | skipped, {"floor", "alpheus", "redis", "etcd"})
        self.assertFalse(who & skipped)
        for s in self.data["skips"]:
            if s["what"] in ("redis", "etcd"):
                tell_skipped("%s, %s: %s" % (s["scenario"], s["what"], s["why"]))
        self.assertEqual(seen, {(a, b, c) for a in who for b in METRICS
                                for c in (0, 1)})

    def test_peer_that_is_not_installed_is_skipped_in_sight(self):
        path = os.path.join(self.folder.name, "no_peers.json")
        ran = run(self.program, "--tiny", "--rounds", "1", "--only", "peers",
                  "--json", path, env=dict(os.environ, PATH="/nowhere"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        told = run(sys.executable, "-B", REPORT, path, self.folder.name)
        self.assertIn("skipped: peers, redis:", told.stdout)
        self.assertIn("skipped: peers, etcd:", told.stdout)
        self.assertIn("skipped: latency, all of it: not asked for",
                      told.stdout)
        with open(path, encoding="utf-8") as file:
            self.assertEqual({m["candidate"]
                              for m in json.load(file)["measurements"]},
                             {"floor", "alpheus"})

    def test_measurements_have_their_shape(self):
        for m in self.data["measurements"]:
            self.assertEqual(len(m["samples"]), self.data["rounds"])
            self.assertGreater(m["min"], 0)
            self.assertLessEqual(m["min"], m["median"])
            self.assertLessEqual(m["median"], m["max"])
        for m in self.of("latency"):
            self.assertEqual(set(m["details"]),
                             {"sends", "receives", "waits", "yields"})

    def test_floor_sends_once_to_each_backup(self):
        for m in self.of("latency"):
            if m["candidate"] == "floor" and m["parameters"]["bytes"] == 64:
                self.assertEqual(m["details"]["sends"],
                                 m["parameters"]["backups"])
                self.assertGreaterEqual(m["details"]["receives"],
                                        m["parameters"]["backups"])

    def test_waiting_is_as_asked(self):
        for m in self.data["measurements"]:
            if (m["parameters"].get("spin") == 0
                    and m["candidate"] in ("floor", "fabric")):
                self.assertEqual(m["details"]["yields"], 0, m)

    def test_report_judges_and_draws(self):
        told = run(plotting_python(), "-B", REPORT, self.path,
                   self.folder.name)
        self.assertEqual(told.returncode, 0, told.stderr)
        for part in ("Append + force, spinning", "Append + force, blocking",
                     "System calls", "Where the time goes", "Aims",
                     "none is pinned", "preset tiny", "Beside peers",
                     "16 records", "By number of backups", "Force policies",
                     "By order of flushes", "Where the copies are",
                     "Recovery of a log", "Exposure with one backup",
                     "Logs with one thread each", "the third gets 2 MiB",
                     "Claims of the Arcadia paper",
                     "clflushopt", "6d", "7b"):
            self.assertIn(part, told.stdout)
        for skip in self.data["skips"]:
            self.assertIn(skip["why"], told.stdout)
        if "skipped: plots" in told.stdout:
            self.skipTest("figures: no matplotlib "
                          "(Debian: python3-matplotlib)")
        for name in ("latency", "peers", "6d", "6ab", "7b", "8cd", "resync"):
            with open(os.path.join(self.folder.name,
                                   "figure_replicated_%s.svg" % name),
                      encoding="utf-8") as file:
                self.assertIn("<svg", file.read())

    def judged(self, floor_us, alpheus_us, share_of_others=0.0):
        """The tiny run with other times for 64 B, spinning."""
        data = copy.deepcopy(self.data)
        for disturbance in data["disturbances"]:
            disturbance["share_of_others"] = share_of_others
        data["measurements"] = [m for m in copy.deepcopy(self.of("latency"))
                                if m["candidate"] == "floor"
                                and m["metric"] == "p50"]
        logs = copy.deepcopy(data["measurements"])
        for m in logs:
            m["candidate"] = "alpheus"
        for found, us in ((data["measurements"], floor_us),
                          (logs, alpheus_us)):
            for m in found:
                ns = us * 1e3 * m["parameters"]["backups"]
                m.update(samples=[ns, ns], median=ns, min=ns, max=ns)
        data["measurements"] += logs
        return replicated.aims(results.Results(data))

    def test_aims_are_judged_at_their_limits(self):
        text = self.judged(5.0, 7.5)
        self.assertEqual(text.count("pass   "), 2, text)
        self.assertNotIn("VOID", text)
        text = self.judged(5.0, 7.6)
        self.assertEqual(text.count("FAIL   "), 2, text)
        self.assertNotIn("VOID", text)

    def test_others_on_the_cores_void_scenarios_in_sight(self):
        self.assertNotIn("VOID", self.judged(5.0, 5.0, 0.10))
        text = self.judged(5.0, 5.0, 0.11)
        for disturbance in self.data["disturbances"]:
            self.assertIn("VOID: %s: others had 11 %%"
                          % disturbance["scenario"], text)

    def test_bad_usage_is_refused(self):
        for arguments in ([], ["--json"], ["--json", "f", "--rounds", "0"],
                          ["--json", "f", "--backups", "9"],
                          ["--json", "f", "--only", "nothing"],
                          ["--json", "f", "--quick", "--tiny"],
                          ["backup", "floor", "/dev/shm", "many"],
                          ["backup", "nothing", "/dev/shm", "4096"],
                          ["backup", "copy", "/nowhere", "0"]):
            self.assertNotEqual(run(self.program, *arguments).returncode, 0,
                                arguments)

    def test_backup_that_cannot_start_is_reported(self):
        ran = run(self.program, "--tiny", "--dir", "/proc", "--json",
                  self.path + "x")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/proc", ran.stderr)

    def test_result_that_cannot_be_written_is_reported(self):
        ran = run(self.program, "--tiny", "--sizes", "64", "--backups", "1",
                  "--json", "/nowhere/replicated.json")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("/nowhere/replicated.json", ran.stderr)


if __name__ == "__main__":
    smoke.main()
