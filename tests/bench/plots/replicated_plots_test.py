#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Aims and claims of the log with backups, judged from made-up runs at both
sides of each limit.

usage: replicated_plots_test.py
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import replicated  # noqa: E402
import replicated_claims  # noqa: E402
import replicated_peers  # noqa: E402
import replicated_resync  # noqa: E402
import replicated_sweeps  # noqa: E402
import results  # noqa: E402


def measured(scenario, candidate, metric, value, **parameters):
    return {"scenario": scenario, "candidate": candidate, "metric": metric,
            "unit": "ns", "parameters": parameters,
            "samples": [value] * 5, "median": value, "min": value,
            "max": value, "details": {}}


def run_of(*measurements, cores=2, distributions=()):
    return results.Results({
        "schema_version": results.SCHEMA_VERSION,
        "machine": {"cores": list(range(cores))}, "skips": [],
        "measurements": list(measurements),
        "distributions": list(distributions)})


def words(verdicts):
    return [v.word for v in verdicts]


def peers(alpheus, redis, etcd):
    """p50 of each, spinning and blocking."""
    return run_of(*[
        measured("peers", who, "p50", value, quorum=2, backups=2, bytes=64,
                 spin=spin)
        for who, of in (("alpheus", alpheus), ("redis", redis),
                        ("etcd", etcd))
        for spin, value in zip((1, 0), of)])


class PeersTest(unittest.TestCase):

    def test_each_counts_by_the_waiting_that_suits_it_best(self):
        run = peers((10.0, 99.0), (99.0, 40.0), (100.0, 999.0))
        self.assertEqual(words(replicated_peers.judge(run)), ["pass", "pass"])
        run = peers((10.0, 99.0), (39.9, 50.0), (99.9, 999.0))
        self.assertEqual(words(replicated_peers.judge(run)), ["FAIL", "FAIL"])

    def test_peer_that_was_not_measured_is_skipped(self):
        self.assertEqual(words(replicated_peers.judge(run_of())),
                         ["skipped", "skipped"])
        self.assertEqual(replicated_peers.to_text(run_of()), "")


def sweeps(batch, second, lost):
    """Rate of batches, cost of the second backup, time of recovery, each
    relative to what it is held against."""
    where = {"bytes": 64, "spin": 1, "batch": 16}
    return run_of(
        measured("batches", "floor", "mean", 60.0, **where),
        measured("batches", "alpheus", "mean", 60.0 / batch, **where),
        *[measured("backups", "alpheus", "p50", value, backups=count,
                   quorum=count + 1, bytes=64)
          for count, value in ((0, 5.0), (1, 15.0), (2, 15.0 + 10 * second))],
        measured("recovery", "floor", "total", 100.0, log_mib=256),
        measured("recovery", "copy lost", "total", 100.0 * lost,
                 log_mib=256))


def resync(before, during, mib=256):
    return run_of(*[measured("resync", who, "p99", value, bytes=64, mib=mib)
                    for who, value in (("before resync", before),
                                       ("resync", during))])


class ResyncTest(unittest.TestCase):

    def test_aim_is_judged_at_its_limit_within_a_pair(self):
        self.assertEqual(words(replicated_resync.judge(resync(10.0, 20.0))),
                         ["pass"])
        self.assertEqual(words(replicated_resync.judge(resync(10.0, 20.1))),
                         ["FAIL"])
        run = resync(10.0, 10.0)
        before, during = run.find("resync")
        before["samples"] = [10.0, 10.0, 10.0, 90.0, 90.0]
        during["samples"] = [30.0, 30.0, 30.0, 90.0, 90.0]
        self.assertEqual(words(replicated_resync.judge(run)), ["FAIL"])

    def test_less_that_was_missed_is_not_judged(self):
        self.assertEqual(
            words(replicated_resync.judge(resync(10.0, 11.0, mib=2))),
            ["skipped"])
        self.assertEqual(words(replicated_resync.judge(run_of())), ["skipped"])
        self.assertEqual(replicated_resync.to_text(run_of()), "")

    def test_results_of_older_versions_are_read(self):
        run = run_of(*[measured("rejoin", who, "p99", value, bytes=64, mib=256)
                       for who, value in (("before rejoin", 10.0),
                                          ("rejoin", 20.1))])
        self.assertEqual(words(replicated_resync.judge(run)), ["FAIL"])


class VoidTest(unittest.TestCase):

    def test_others_on_the_cores_void_their_scenario(self):
        run = run_of()
        run.data["disturbances"] = [
            {"scenario": name, "seconds": 9.0, "share_of_others": share}
            for name, share in (("latency", 0.10), ("peers", 0.11))]
        self.assertEqual(results.disturbed(run), {"peers": 0.11})
        self.assertIn("VOID: peers: others had 11 %", replicated.aims(run))
        self.assertIn("latency 10 %, peers 11 %", replicated.processes(run))
        self.assertNotIn("VOID", replicated.aims(run_of()))


class SweepsTest(unittest.TestCase):

    def test_aims_are_judged_at_their_limits(self):
        self.assertEqual(words(replicated_sweeps.judge(sweeps(0.61, 0.9, 2.9))),
                         ["pass"] * 3)
        self.assertEqual(words(replicated_sweeps.judge(sweeps(0.59, 1.1, 3.1))),
                         ["FAIL"] * 3)
        self.assertEqual(words(replicated_sweeps.judge(run_of())),
                         ["skipped"] * 3)

    def test_first_backup_that_costs_nothing_is_not_compared_with(self):
        run = run_of(*[measured("backups", "alpheus", "p50", 5.0,
                                backups=count, quorum=count + 1, bytes=64)
                       for count in (0, 1, 2)])
        self.assertIsNone(replicated_sweeps.cost_of_second(run))

    def second(self, cores, **times):
        """Verdict on the second backup; its cost times the first's, by who."""
        return replicated_sweeps.judge_second(run_of(*[
            measured("backups", who, "p50", value, backups=count,
                     quorum=count + 1, bytes=64)
            for who, cost in times.items()
            for count, value in ((0, 5.0), (1, 15.0), (2, 15.0 + 10 * cost))],
            cores=cores)).word

    def test_second_backup_is_held_against_the_floor_where_cores_are_few(self):
        self.assertEqual(self.second(2, alpheus=1.1, floor=1.2), "pass")
        self.assertEqual(self.second(2, alpheus=1.2, floor=1.1), "FAIL")
        self.assertEqual(self.second(2, alpheus=0.9, floor=0.8), "FAIL")
        self.assertEqual(self.second(3, alpheus=1.1, floor=1.2), "FAIL")
        self.assertEqual(self.second(3, alpheus=0.9, floor=0.8), "pass")

    def test_nothing_measured_is_no_table(self):
        self.assertEqual(replicated_sweeps.to_text(run_of()), "")


def order(p50, force, clwbs=(1, 0)):
    """p50 and force by order of flushes, at one size."""
    return [measured("order", who, metric, value, clwb=clwb, bytes=64)
            for clwb in clwbs
            for metric, of in (("p50", p50), ("force", force),
                               ("copy", (1.0, 1.0, 1.0)))
            for who, value in zip(replicated_sweeps.ORDERS, of)]


def claim(run, figure, place=0):
    return [c for c in replicated_claims.judge(run)
            if c.figure == figure][place].word


class ClaimsTest(unittest.TestCase):

    def test_nothing_measured_is_not_judged(self):
        self.assertEqual({c.word for c in replicated_claims.judge(run_of())},
                         {"not judged"})

    def test_order_of_flushes(self):
        run = run_of(*order((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)))
        self.assertEqual(claim(run, "6a"), "reproduced")
        self.assertEqual(claim(run, "6b"), "reproduced")
        run = run_of(*order((1.0, 3.0, 2.0), (4.0, 5.0, 6.0)))
        self.assertEqual(claim(run, "6a"), "not reproduced")
        self.assertEqual(claim(run, "6b"), "not reproduced")
        run = run_of(*order((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), clwbs=(1,)))
        self.assertEqual(claim(run, "6a"), "not judged")

    def backups(self, none, one, five, cores):
        return run_of(*[measured("backups", "alpheus", "mean", value,
                                 backups=count, quorum=count + 1, bytes=64)
                        for count, value in ((0, none), (1, one), (5, five))],
                      cores=cores)

    def test_further_backups_cost_little(self):
        self.assertEqual(claim(self.backups(1.0, 2.0, 2.9, 2), "6d"),
                         "reproduced")
        self.assertEqual(claim(self.backups(1.0, 2.0, 3.1, 6), "6d"),
                         "not reproduced")
        self.assertEqual(claim(self.backups(1.0, 1.4, 1.5, 6), "6d"),
                         "not reproduced")
        # Six processes on two cores wait for each other.
        self.assertEqual(claim(self.backups(1.0, 2.0, 9.0, 2), "6d"),
                         "not judged")

    def recovered(self, own, lost, log_mib=256):
        return run_of(
            measured("recovery", "own copy", "total", own, log_mib=log_mib),
            measured("recovery", "copy lost", "total", lost, log_mib=log_mib))

    def test_recovery_without_the_primary_copy(self):
        run = self.recovered(200.0, 499.0)
        self.assertEqual(claim(run, "7b"), "reproduced")
        self.assertEqual(claim(run, "7b", 1), "reproduced")
        run = self.recovered(600.0, 500.0)
        self.assertEqual(claim(run, "7b"), "not reproduced")
        self.assertEqual(claim(run, "7b", 1), "not reproduced")
        self.assertEqual(claim(self.recovered(1.0, 2.0, 64), "7b", 1),
                         "not judged")

    def test_window_is_far_below_its_bound(self):
        def run(counts):
            return run_of(
                measured("exposure", "alpheus-freq8", "rate", 1.0, threads=2),
                distributions=[{"scenario": "exposure", "metric": "exposure",
                                "candidate": "alpheus-freq8",
                                "parameters": {"threads": 2, "bound": 16},
                                "counts": counts}])
        self.assertEqual(claim(run([0, 0, 0, 0, 9]), "8c"), "reproduced")
        self.assertEqual(claim(run([0, 0, 0, 0, 0, 9]), "8c"),
                         "not reproduced")


if __name__ == "__main__":
    unittest.main()
