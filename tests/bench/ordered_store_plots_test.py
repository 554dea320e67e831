#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The paper's claims on Figure 10, judged from made-up runs at both sides of
each limit.

usage: ordered_store_plots_test.py
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import ordered_store  # noqa: E402
import results  # noqa: E402


def measured(scenario, candidate, metric, value, threads, bound=0):
    return {"scenario": scenario, "candidate": candidate, "metric": metric,
            "unit": "u", "parameters": {"threads": threads},
            "samples": [value] * 3, "median": value, "min": value,
            "max": value, "details": {"bound": bound}}


def run_of(*measurements, cores=2, others=0.0):
    return results.Results({
        "schema_version": results.SCHEMA_VERSION, "commit": "c",
        "preset": "full", "rounds": 3, "folder": "/f",
        "machine": {"cores": list(range(cores)), "cpu_model": "p",
                    "kernel": "k"},
        "disturbances": [{"scenario": "zipfian", "seconds": 1.0,
                          "share_of_others": others}],
        "skips": [], "measurements": list(measurements),
        "distributions": []})


def rates(frequency, group, peer, threads=(1, 2, 8)):
    """The same with each number of threads."""
    return [measured("zipfian", name, "throughput", value, n)
            for n in threads
            for name, value in (("alpheus-freq8", frequency),
                                ("alpheus-freq16", frequency),
                                ("alpheus-group128", group),
                                ("query-fresh-group128", peer))]


def words(run, figure):
    return [c.word for c in ordered_store.judge(run) if c.figure == figure]


class ThroughputTest(unittest.TestCase):

    def test_claims_are_judged_at_their_limits(self):
        up_to, best, group, at_8 = words(
            run_of(*rates(16.5, 16.4, 10.0)), "10a")
        self.assertEqual((up_to, best, group),
                         ("reproduced", "reproduced", "reproduced"))
        self.assertEqual(at_8, "not judged")
        up_to, best, group, _ = words(run_of(*rates(16.4, 16.4, 16.4)), "10a")
        self.assertEqual((up_to, best, group), ("not reproduced",) * 3)

    def test_threads_that_share_cores_do_not_count(self):
        run = run_of(*rates(1.0, 1.0, 2.0, threads=(1, 2)),
                     *rates(99.0, 50.0, 2.0, threads=(8,)))
        self.assertEqual(words(run, "10a")[:3], ["not reproduced"] * 3)

    def test_eight_threads_are_judged_on_eight_cores(self):
        closer = rates(9.0, 9.0, 3.0, threads=(1,)) + rates(
            9.0, 4.0, 3.0, threads=(8,))
        self.assertEqual(words(run_of(*closer, cores=8), "10a")[3],
                         "reproduced")
        apart = rates(9.0, 4.0, 3.0, threads=(1,)) + rates(
            9.0, 9.0, 3.0, threads=(8,))
        self.assertEqual(words(run_of(*apart, cores=8), "10a")[3],
                         "not reproduced")

    def test_disturbed_run_decides_nothing(self):
        run = run_of(*rates(16.5, 16.4, 10.0), others=0.11)
        self.assertEqual(words(run, "10a"), ["not judged"] * 4)
        self.assertIn("VOID: zipfian: others had 11 %",
                      ordered_store.to_text(run))

    def test_what_was_not_measured_is_not_judged(self):
        judged = ordered_store.judge(run_of())
        self.assertEqual({c.word for c in judged}, {"not judged"})
        self.assertEqual(len(judged), 5)


def windows(frequency, seen, group=135, peer=264):
    return [measured("commit", name, "exposed max", value, 8, bound)
            for name, value, bound in (
                ("alpheus-freq8", seen, frequency),
                ("alpheus-group128", 1, group),
                ("query-fresh-group128", 1, peer))]


class WindowTest(unittest.TestCase):

    def test_window_must_be_smaller_and_kept(self):
        self.assertEqual(words(run_of(*windows(134, 134)), "10b"),
                         ["reproduced"])
        self.assertEqual(words(run_of(*windows(135, 1)), "10b"),
                         ["not reproduced"])
        self.assertEqual(words(run_of(*windows(64, 65)), "10b"),
                         ["not reproduced"])


class TextTest(unittest.TestCase):

    def test_tables_name_all_that_was_measured(self):
        text = ordered_store.to_text(run_of(*rates(2.0, 3.0, 4.0)))
        for part in ("alpheus-freq8", "0.50", "query-fresh-group128", "1.00"):
            self.assertIn(part, text)
        self.assertNotIn("until it is durable", text)


if __name__ == "__main__":
    unittest.main()
