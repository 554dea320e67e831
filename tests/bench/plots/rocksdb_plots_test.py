#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Aims and claims of RocksDB with its WAL in a log, judged from made-up runs at
both sides of each limit.

usage: rocksdb_plots_test.py
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import results  # noqa: E402
import rocksdb_claims  # noqa: E402
import rocksdb_wal  # noqa: E402

MACHINE = {"cpu_model": "none", "memory_bytes": 0, "kernel": "", "compiler": "",
           "build_type": "", "load_average": 0}


def put(candidate, samples, metric="p50", random=0, threads=1, size=100):
    return {"scenario": "put", "candidate": candidate, "metric": metric,
            "unit": "ns", "parameters": {"bytes": size, "random": random,
                                         "sync": 1, "threads": threads},
            "samples": samples, "median": sorted(samples)[len(samples) // 2],
            "min": min(samples), "max": max(samples), "details": {}}


def run_of(*measurements, cores=2, others=0.0):
    return results.Results({
        "schema_version": results.SCHEMA_VERSION, "commit": "", "preset": "",
        "rounds": 5, "folder": "",
        "machine": dict(MACHINE, cores=list(range(cores))), "skips": [],
        "measurements": list(measurements), "distributions": [],
        "disturbances": [{"scenario": "put", "seconds": 1,
                          "share_of_others": others}]})


def words(verdicts):
    return [v.word for v in verdicts]


class IntervalTest(unittest.TestCase):

    def test_few_samples_have_their_whole_range(self):
        self.assertEqual(results.median_interval([3, 1, 2]), (1, 3))
        # 6 samples have 31/32 within their range, 4/5 of it less than 95 %.
        self.assertEqual(results.median_interval(list(range(6))), (0, 5))

    def test_many_samples_leave_out_the_outermost(self):
        # 9 values: the interval from the second to the eighth has 96.1 %; from
        # the third to the seventh it would have 82 %.
        self.assertEqual(results.median_interval(list(range(9))), (1, 7))
        self.assertEqual(results.median_interval(list(range(20))), (5, 14))


class AimsTest(unittest.TestCase):

    def test_cost_is_judged_round_by_round_against_half_of_tmpfs(self):
        base = [1000.0, 9000.0, 1000.0, 1000.0, 1000.0]
        for extra, word in ((1000.0, "pass"), (1010.0, "FAIL")):
            run = run_of(put("none", base),
                         put("default-tmpfs", [ns + 2000 for ns in base]),
                         put("alpheus", [ns + extra for ns in base]))
            self.assertEqual(words(rocksdb_wal.judge(run)),
                             [word, "skipped", "skipped", "skipped"])

    def test_one_backup_may_cost_an_append_and_a_microsecond(self):
        base = [1000.0] * 5
        for extra, word in ((11000.0, "pass"), (11100.0, "FAIL")):
            run = run_of(put("none", base, random=1),
                         put("append-1-backup", [10000.0] * 5, random=1),
                         put("alpheus-1-backup",
                             [ns + extra for ns in base], random=1))
            self.assertEqual(words(rocksdb_wal.judge(run)),
                             ["skipped", "skipped", "skipped", word])

    def test_floor_stands_beside_each_aim(self):
        none = [1000.0, 3000.0, 1000.0, 1000.0, 1000.0]
        run = run_of(put("none", none),
                     put("floor", [ns + 1500 for ns in none]),
                     put("default-tmpfs", [ns + 2000 for ns in none]),
                     put("alpheus", [ns + 1900 for ns in none]),
                     put("append-1-backup", [9000.0] * 5),
                     put("alpheus-1-backup", [ns + 12000 for ns in none]))
        text = rocksdb_wal.aims(run)
        self.assertIn("0.95x (0.95 to 0.95)   at most 0.50x (floor 0.75x)",
                      text)
        self.assertIn("1.20x (1.20 to 1.20)   at most 1.00x (floor 1.05x)",
                      text)

    def test_run_beside_others_is_void_in_sight(self):
        self.assertNotIn("VOID", rocksdb_wal.aims(run_of(others=0.09)))
        self.assertIn("VOID: put", rocksdb_wal.aims(run_of(others=0.11)))

    def test_text_of_a_run_with_holes_has_no_holes(self):
        text = rocksdb_wal.to_text(run_of(put("none", [1000.0] * 5),
                                          put("flex", [2000.0] * 5)))
        self.assertIn("1.00 (1.00 to 1.00)", text)


class ClaimsTest(unittest.TestCase):

    def figure_9(self, alpheus, flex, backup, threads=16, cores=16,
                 others=0.0):
        """The claims for (sequential, random) puts, ns."""
        measurements = []
        for who, of in (("alpheus", alpheus), ("flex", flex),
                        ("alpheus-1-backup", backup)):
            for random, ns in enumerate(of):
                measurements += [
                    put(who, [ns] * 5, random=random, threads=threads),
                    put(who, [1e9 / ns] * 5, "throughput", random=random,
                        threads=threads)]
        return rocksdb_claims.judge(run_of(*measurements, cores=cores,
                                           others=others))

    def test_all_are_reproduced_where_the_figures_say_so(self):
        self.assertEqual(words(
            self.figure_9((61.0, 950.0), (100.0, 1000.0), (70.0, 1000.0))),
            ["reproduced"] * 7)

    def test_none_is_where_they_do_not(self):
        claims = self.figure_9((63.0, 62.5), (100.0, 90.0), (110.0, 110.0))
        self.assertEqual(words(claims), ["not reproduced"] * 7)
        self.assertIn("TCP", claims[2].why)

    def test_few_cores_are_judged_by_as_many_threads_and_say_so(self):
        claims = self.figure_9((61.0, 950.0), (100.0, 1000.0), (70.0, 1000.0),
                               threads=2, cores=2)
        self.assertEqual(words(claims), ["reproduced"] * 7)
        for claim in claims:
            self.assertIn("2 threads on 2 cores, not 16 on 16", claim.why)

    def test_disturbed_run_is_judged_where_all_rounds_agree(self):
        claims = self.figure_9((63.0, 62.5), (100.0, 90.0), (110.0, 110.0),
                               others=0.11)
        self.assertEqual(words(claims), ["not reproduced"] * 7)
        self.assertIn("others had 11 %", claims[0].why)

    def test_nothing_is_judged_that_was_not_measured(self):
        self.assertEqual(words(rocksdb_claims.judge(run_of())),
                         ["not judged"] * 7)


if __name__ == "__main__":
    unittest.main()
