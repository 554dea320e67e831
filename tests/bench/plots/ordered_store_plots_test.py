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
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
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
        self.assertEqual(words(run_of(*rates(16.5, 16.4, 10.0)), "10a")[:3],
                         ["reproduced"] * 3)
        self.assertEqual(words(run_of(*rates(16.4, 16.4, 16.4)), "10a")[:3],
                         ["not reproduced"] * 3)

    def test_threads_that_share_cores_do_not_count(self):
        run = run_of(*rates(1.0, 1.0, 2.0, threads=(1, 2)),
                     *rates(99.0, 50.0, 2.0, threads=(8,)))
        self.assertEqual(words(run, "10a")[:3], ["not reproduced"] * 3)

    def test_group_commit_must_fall_to_the_peer(self):
        for group, peer, expected in (
                (4.0, 3.2, ["reproduced"] * 2),
                (4.1, 3.2, ["not reproduced", "reproduced"]),
                (9.0, 3.2, ["not reproduced", "reproduced"]),
                (9.1, 3.0, ["not reproduced"] * 2)):
            run = run_of(*rates(9.0, 9.0, 3.0, threads=(1,)),
                         *rates(9.0, group, peer, threads=(2,)))
            self.assertEqual(words(run, "10a")[3:], expected)

    def test_most_threads_with_a_core_each_are_judged_and_told(self):
        measured_here = rates(9.0, 9.0, 3.0, threads=(1,)) + rates(
            9.0, 9.0, 3.0, threads=(2,)) + rates(9.0, 3.0, 3.0, threads=(16,))
        two, many = (run_of(*measured_here, cores=cores) for cores in (2, 16))
        self.assertEqual(words(two, "10a")[3:], ["not reproduced"] * 2)
        self.assertEqual(words(many, "10a")[3:], ["reproduced"] * 2)
        for claim in ordered_store.judge(two)[:5]:
            self.assertIn("2 threads on 2 cores, not 16 on 16", claim.why)
        for claim in ordered_store.judge(many)[:5]:
            self.assertNotIn("not 16 on 16", claim.why)

    def test_disturbed_run_decides_where_all_rounds_agree(self):
        run = run_of(*rates(16.5, 16.4, 10.0), others=0.11)
        self.assertEqual(words(run, "10a")[:3], ["reproduced"] * 3)
        self.assertIn("others had 11 % of the cores, but all rounds agree",
                      ordered_store.judge(run)[0].why)
        self.assertIn("VOID: zipfian: others had 11 %",
                      ordered_store.to_text(run))

    def test_disturbed_run_decides_nothing_where_rounds_disagree(self):
        measurements = rates(16.5, 16.4, 10.0)
        for m in measurements:
            if m["candidate"] == "query-fresh-group128":
                m["samples"] = [10.0, 10.0, 17.0]
        self.assertEqual(words(run_of(*measurements, others=0.11), "10a")[:3],
                         ["not judged"] * 3)
        self.assertEqual(words(run_of(*measurements, others=0.09), "10a")[:3],
                         ["reproduced"] * 3)

    def test_what_was_not_measured_is_not_judged(self):
        judged = ordered_store.judge(run_of())
        self.assertEqual({c.word for c in judged}, {"not judged"})
        self.assertEqual(len(judged), 6)


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
