#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests bench/plots: the arithmetic of results, aims and claims.

Method: runs made up so that the verdict is known, on both sides of each limit.
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import claims  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
import tables  # noqa: E402
import targets  # noqa: E402


def measurement(scenario, candidate, samples, metric="m", unit="ns",
                **parameters):
    ordered = sorted(samples)
    return {"scenario": scenario, "candidate": candidate, "metric": metric,
            "unit": unit, "parameters": parameters, "samples": samples,
            "median": ordered[len(ordered) // 2], "min": ordered[0],
            "max": ordered[-1],
            "details": {"fences": 1, "flushed_lines": 0,
                        "reclaim_ns": 1}}


def run_of(*measurements, distributions=(), skips=(), cores=2):
    return results.Results({
        "schema_version": results.SCHEMA_VERSION, "preset": "full",
        "commit": "c", "folder": "/f", "rounds": 5,
        "machine": {"cores": list(range(cores)), "cpu_model": "p",
                    "memory_bytes": 2 ** 30, "kernel": "k", "compiler": "g",
                    "build_type": "b", "load_average": 0.5},
        "measurements": list(measurements),
        "distributions": list(distributions), "skips": list(skips)})


def word_of(verdicts, start):
    found = [v.word for v in verdicts if v.what.startswith(start)]
    assert len(found) == 1, (start, found)
    return found[0]


def claim_of(judged, start):
    found = [c for c in judged if c.text.startswith(start)]
    assert len(found) == 1, (start, found)
    return found[0]


class ResultsTest(unittest.TestCase):

    def test_other_schema_is_refused(self):
        with self.assertRaises(ValueError):
            results.Results({"schema_version": results.SCHEMA_VERSION + 1})

    def test_ratios_are_taken_round_by_round(self):
        # The machine was three times slower in the second round.
        found = results.ratio(measurement("s", "a", [2.0, 6.0, 2.2]),
                              measurement("s", "b", [1.0, 3.0, 1.0]))
        self.assertEqual(found.median, 2.0)
        self.assertEqual((found.low, found.high), (2.0, 2.2))

    def test_ratio_of_nothing_is_none(self):
        self.assertIsNone(results.ratio(None, measurement("s", "b", [1.0])))

    def test_floor_is_the_cheapest(self):
        run = run_of(measurement("append", "floor-a", [5.0], bytes=64),
                     measurement("append", "floor-b", [4.0], bytes=64),
                     measurement("append", "alpheus", [1.0], bytes=64))
        self.assertEqual(run.floor("append", bytes=64)["candidate"], "floor-b")

    def test_floor_of_rates_is_the_fastest(self):
        run = run_of(
            measurement("threads", "floor-a", [5.0], unit="records/s"),
            measurement("threads", "floor-b", [4.0], unit="records/s"))
        self.assertEqual(run.floor("threads")["candidate"], "floor-a")

    def test_two_that_match_are_ambiguous(self):
        run = run_of(measurement("append", "alpheus", [1.0], bytes=64),
                     measurement("append", "alpheus", [1.0], bytes=128))
        with self.assertRaises(ValueError):
            run.one("append", "alpheus")
        self.assertIsNotNone(run.one("append", "alpheus", bytes=64))

    def test_quantiles_count(self):
        counts = [0, 50, 49, 1]
        self.assertEqual(results.quantile(counts, 0.5), 1)
        self.assertEqual(results.quantile(counts, 0.99), 2)
        self.assertEqual(results.quantile(counts, 1), 3)


class TargetsTest(unittest.TestCase):

    def test_nothing_measured_is_skipped_not_passed(self):
        for verdict in targets.judge(run_of()):
            self.assertEqual(verdict.word, "skipped", verdict.what)

    def append(self, alpheus, pmemlog=180.0, rare=30.0):
        return targets.judge(run_of(
            measurement("append", "floor-nt16", [80.0], bytes=64),
            measurement("append", "alpheus", [alpheus], bytes=64),
            measurement("append", "alpheus-freq16", [rare], bytes=64),
            measurement("append", "libpmemlog", [pmemlog], bytes=64)))

    def test_append_at_its_limits(self):
        name = "append + force(1), 64 B: time"
        self.assertEqual(word_of(self.append(100.0), name), "pass")
        self.assertEqual(word_of(self.append(100.1), name), "FAIL")
        name = "append + force(1), 64 B: faster"
        self.assertEqual(word_of(self.append(100.0), name), "pass")
        self.assertEqual(word_of(self.append(100.0, 179.0), name), "FAIL")

    def test_frequency_at_its_limits(self):
        name = "frequency 16, 64 B: rate"
        self.assertEqual(word_of(self.append(100.0), name), "pass")
        self.assertEqual(word_of(self.append(100.0, 179.0), name), "FAIL")
        name = "frequency 16, 64 B: time"
        self.assertEqual(word_of(self.append(100.0, 180.0, 100.0), name),
                         "pass")
        self.assertEqual(word_of(self.append(100.0, 180.0, 100.1), name),
                         "FAIL")

    def test_two_threads_must_be_faster(self):
        for two, word in ((101.0, "pass"), (100.0, "FAIL")):
            judged = targets.judge(run_of(
                measurement("threads", "alpheus", [100.0], bytes=64,
                            threads=1),
                measurement("threads", "alpheus", [two], bytes=64,
                            threads=2)))
            self.assertEqual(word_of(judged, "two threads, 64 B"), word)

    def test_rare_forces_at_their_limit(self):
        for rare, word in ((97.0, "pass"), (96.9, "FAIL")):
            judged = targets.judge(run_of(
                measurement("frequencies", "alpheus", [100.0],
                            unit="records/s", bytes=1024, threads=2),
                measurement("frequencies", "alpheus-freq8", [rare],
                            unit="records/s", bytes=1024, threads=2),
                measurement("frequencies", "alpheus-freq16", [100.0],
                            unit="records/s", bytes=1024, threads=2)))
            self.assertEqual(
                word_of(judged, "frequency 8, 1 KiB, 2 threads: rate"), word)
            self.assertEqual(
                word_of(judged, "frequency 16, 1 KiB, 2 threads: rate"),
                "pass")

    def test_recovery_at_its_limit(self):
        for total, word in ((15.0, "pass"), (15.1, "FAIL")):
            judged = targets.judge(run_of(
                measurement("recovery", "alpheus", [total], "total", "ms",
                            bytes=1024, log_mib=256),
                measurement("recovery", "parts", [10.0],
                            "pass from the file", "ms", bytes=1024,
                            log_mib=256)))
            self.assertEqual(
                word_of(judged, "recovery + iteration, 256 MiB of 1 KiB"),
                word)

    def test_few_rounds_are_told(self):
        self.assertIn("NOTE: only 1 rounds",
                      targets.to_text(self.append(100.0)))


class ClaimsTest(unittest.TestCase):

    def test_nothing_measured_is_not_judged(self):
        judged = claims.judge(run_of())
        self.assertEqual({c.figure for c in judged},
                         {"5a", "5b", "5c", "5d", "7a", "8a", "8b", "8c",
                          "8d"})
        for claim in judged:
            self.assertEqual(claim.word, "not judged", claim.text)

    def latency(self, flex):
        return claims.judge(run_of(*[
            measurement("append", who, [ns], bytes=64)
            for who, ns in (("alpheus", 100.0), ("libpmemlog", 600.0),
                            ("flex", flex))]))

    def test_latency_claims_follow_the_data(self):
        judged = self.latency(800.0)
        for start in ("Arcadia has the lowest", "up to 6x", "up to 8x",
                      "FLEX performs"):
            self.assertEqual(claim_of(judged, start).word, "reproduced")
        judged = self.latency(99.0)
        for start in ("Arcadia has the lowest", "up to 8x", "FLEX performs"):
            self.assertEqual(claim_of(judged, start).word, "not reproduced")
            self.assertNotEqual(claim_of(judged, start).why, "")

    def test_four_threads_need_four_cores(self):
        rates = [measurement("threads", who, [rate], unit="records/s",
                             bytes=64, threads=n)
                 for who in ("alpheus", "flex", "libpmemlog")
                 for n, rate in ((1, 1.0), (2, 2.0), (4, 3.0))]
        start = "Arcadia's throughput is at its maximum"
        self.assertEqual(claim_of(claims.judge(run_of(*rates)), start).word,
                         "not judged")
        self.assertEqual(
            claim_of(claims.judge(run_of(*rates, cores=4)), start).word,
            "reproduced")
        self.assertEqual(claim_of(claims.judge(run_of(*rates)),
                                  "FLEX has a flat").word, "not reproduced")

    def window(self, counts):
        rate = measurement("policies", "alpheus", [1.0], "throughput",
                           bytes=64, threads=4)
        rates = [dict(rate, candidate=who) for who in (
            "alpheus", "alpheus-freq8", "alpheus-freq16", "alpheus-group128",
            "alpheus-group256")]
        seen = {"scenario": "policies", "candidate": "alpheus-freq8",
                "metric": "exposure", "counts": counts,
                "parameters": {"bytes": 64, "threads": 4, "bound": 32}}
        judged = claims.judge(run_of(*rates, distributions=[seen]))
        return claim_of(judged, "with frequency 8").word

    def test_window_must_be_small_and_never_above_its_bound(self):
        self.assertEqual(self.window([0] * 8 + [9]), "reproduced")
        self.assertEqual(self.window([0] * 9 + [9]), "not reproduced")
        self.assertEqual(self.window([9] + [0] * 31 + [1]), "reproduced")
        self.assertEqual(self.window([9] + [0] * 32 + [1]), "not reproduced")

    def test_missing_counters_are_named(self):
        judged = claims.judge(run_of(skips=[{
            "scenario": "policies", "what": "L1d read misses",
            "why": "no such counter"}]))
        claim = claim_of(judged, "group commit has much higher L1d")
        self.assertEqual(claim.word, "not judged")
        self.assertIn("no such counter", claim.why)


class TextTest(unittest.TestCase):

    def test_empty_run_has_text(self):
        run = run_of(skips=[{"scenario": "append", "what": "all of it",
                             "why": "not asked for"}])
        self.assertIn("skipped: append, all of it: not asked for",
                      tables.to_text(run))
        self.assertIn("not judged", claims.to_text(claims.judge(run)))

    def test_more_threads_than_cores_are_told(self):
        run = run_of(
            measurement("threads", "floor-a", [1.0], unit="records/s",
                        bytes=64, threads=4))
        self.assertIn("over-subscribed", tables.threads(run))

    def test_openings_are_told_by_size(self):
        run = run_of(*(
            measurement("opening", "alpheus", [ms], metric, "ms", bytes=1024,
                        log_mib=mib)
            for metric, mib, ms in (("after a crash", 64, 0.5),
                                    ("after a close", 64, 0.25),
                                    ("after a crash", 256, 0.75))))
        rows = [line.split() for line in tables.opening(run).splitlines()]
        self.assertIn(["64", "MiB", "1", "KiB", "0.50", "0.25"], rows)
        self.assertIn(["256", "MiB", "1", "KiB", "0.75", "-"], rows)
        self.assertIn(tables.opening(run), tables.to_text(run))

    def test_missing_arguments_are_refused(self):
        saved, sys.stderr = sys.stderr, open(os.devnull, "w")
        try:
            self.assertEqual(report.main(["report.py"]), 2)
        finally:
            sys.stderr.close()
            sys.stderr = saved


if __name__ == "__main__":
    unittest.main()
