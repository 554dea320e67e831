#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the aims of the service judged by what a run of bench_service measured?"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import results  # noqa: E402
import service  # noqa: E402

MACHINE = {"cpu_model": "a core", "cores": [0, 1], "memory_bytes": 2 ** 30,
           "kernel": "Linux", "compiler": "GNU", "build_type": "Release",
           "load_average": 0.0}


def measured(scenario, candidate, metric, samples, **parameters):
    ordered = sorted(samples)
    return {"scenario": scenario, "candidate": candidate, "metric": metric,
            "unit": "us", "parameters": parameters, "samples": samples,
            "median": ordered[len(ordered) // 2], "min": ordered[0],
            "max": ordered[-1], "details": {"client_core_us": 1.5}}


def run_of(*measurements, others=0.0, skips=()):
    scenarios = {m["scenario"] for m in measurements}
    return results.Results({
        "benchmark": "service", "schema_version": results.SCHEMA_VERSION,
        "preset": "full", "commit": "c", "folder": "/dev/shm", "rounds": 3,
        "machine": MACHINE, "measurements": list(measurements),
        "distributions": [], "skips": list(skips),
        "disturbances": [{"scenario": s, "seconds": 1.0,
                          "share_of_others": others} for s in scenarios]})


def words(run, begin):
    return [v.word for v in service.judge(run) if v.what.startswith(begin)]


def one_record(candidate, samples, size=64):
    return measured("latency", candidate, "p50", samples, bytes=size,
                    in_flight=1, streams=1)


class LatencyTest(unittest.TestCase):

    def judged(self, ours, size=64):
        run = run_of(one_record("floor-echo", [60.0, 80.0, 100.0], size),
                     one_record("floor-embedded", [40.0, 20.0, 0.0], size),
                     one_record("etcd", [260.0] * 3, size),
                     one_record("alpheus", ours, size))
        return words(run, "one record")

    def test_floor_is_the_sum_of_its_parts_round_by_round(self):
        self.assertEqual(self.judged([130.0] * 3), ["pass", "pass"])
        self.assertEqual(self.judged([131.0] * 3), ["FAIL", "FAIL"])

    def test_median_of_the_rounds_is_judged(self):
        self.assertEqual(self.judged([500.0, 130.0, 1.0]), ["pass", "pass"])

    def test_other_sizes_are_not_judged(self):
        self.assertEqual(self.judged([999.0] * 3, size=1024), ["skipped"] * 2)

    def test_peer_that_is_missing_judges_nothing(self):
        run = run_of(one_record("floor-echo", [1.0]),
                     one_record("floor-embedded", [1.0]),
                     one_record("alpheus", [2.0]))
        self.assertEqual(words(run, "one record"), ["pass", "skipped"])

    def test_append_by_callback_is_told_and_not_judged(self):
        run = run_of(one_record("floor-echo", [1.0]),
                     one_record("floor-embedded", [1.0]),
                     one_record("embedded by callback", [3.0]),
                     one_record("alpheus", [2.0]))
        self.assertIn("as the service does: 0.50x", service.aims(run))


class OtherAimsTest(unittest.TestCase):

    def test_rate_has_a_limit_and_an_aim(self):
        for rate, expected in ((99_999.0, ["FAIL", "FAIL"]),
                               (100_000.0, ["pass", "FAIL"]),
                               (250_000.0, ["pass", "pass"])):
            run = run_of(measured("rate", "alpheus", "rate", [rate], bytes=64,
                                  in_flight=64, streams=1))
            self.assertEqual(words(run, "64 records"), expected)
        run = run_of(measured("rate", "alpheus", "rate", [1e6], bytes=64,
                              in_flight=16, streams=1))
        self.assertEqual(words(run, "64 records"), ["skipped"] * 2)

    def test_tail_is_judged_by_its_p99(self):
        for p99, expected in ((2000.0, ["pass"]), (2001.0, ["FAIL"])):
            run = run_of(measured("tail", "alpheus", "from sent p99", [p99],
                                  bytes=64, readers=1))
            self.assertEqual(words(run, "delivery"), expected)

    def test_idle_streams_are_judged_by_kind_and_number(self):
        def judged(streams, kib):
            run = run_of(measured("idle", "alpheus, tails", "memory",
                                  [kib * 1024.0], streams=streams))
            return words(run, "10000 idle streams (tails)")
        self.assertEqual(judged(10_000, 64), ["pass"])
        self.assertEqual(judged(10_000, 64.1), ["FAIL"])
        self.assertEqual(judged(2_000, 1), ["skipped"])

    def test_stopped_reader_may_cost_what_equal_runs_differ_by_and_a_tenth(self):
        def judged(again, beside):
            run = run_of(*[
                measured("slow-reader", who, "append p99", samples, bytes=64,
                         readers=4)
                for who, samples in (("alone", [100.0] * 3),
                                     ("alone again", [again] * 3),
                                     ("beside a stopped", [beside] * 3))])
            return words(run, "a stopped reader: others' p99 of append")
        self.assertEqual(judged(100.0, 109.9), ["pass"])
        self.assertEqual(judged(100.0, 111.0), ["FAIL"])
        self.assertEqual(judged(95.0, 114.9), ["pass"])
        self.assertEqual(judged(105.0, 116.0), ["FAIL"])
        self.assertEqual(judged(105.0, 50.0), ["pass"])

    def test_others_on_the_cores_void_it_in_sight(self):
        run = run_of(one_record("alpheus", [1.0]), others=0.11)
        self.assertIn("VOID: latency: others had 11 %", service.aims(run))
        run = run_of(one_record("alpheus", [1.0]), others=0.10)
        self.assertNotIn("VOID", service.aims(run))


class TextTest(unittest.TestCase):

    def test_tables_have_what_was_measured(self):
        run = run_of(
            one_record("floor-echo", [100.0]),
            one_record("floor-embedded", [50.0]),
            one_record("alpheus", [300.0]),
            measured("rate", "alpheus", "rate", [5e4], bytes=64, in_flight=16,
                     streams=1),
            measured("tail", "alpheus", "from sent p50", [70.0], bytes=64,
                     readers=1),
            measured("slow-reader", "alone", "append p99", [44.0], bytes=64,
                     readers=4),
            measured("idle", "alpheus, tails", "memory", [2048.0], streams=20),
            skips=[{"scenario": "rate", "what": "etcd", "why": "no etcd"}])
        text = service.to_text(run)
        rows = [line.split() for line in text.splitlines()]
        self.assertIn(["64", "B", "alpheus", "300", "-", "-", "-", "2.00",
                       "1.5", "-", "-"], rows)
        self.assertIn(["64", "B", "16", "alpheus", "50000", "50000", "50000",
                       "-", "-", "1.5", "-", "-"], rows)
        self.assertIn(["1", "alpheus", "-", "-", "70", "-", "-", "-"], rows)
        self.assertIn(["alone", "-", "44", "-", "-"], rows)
        self.assertIn(["alpheus,", "tails", "20", "2.0", "-", "-"], rows)
        self.assertIn("skipped: rate, etcd: no etcd", text)
        self.assertNotIn("Streams with one record", text)


class MetricsTest(unittest.TestCase):

    def judged(self, again, scraped, metric="p50"):
        turns = [("unscraped", [100.0] * 3), ("unscraped again", again),
                 ("scraped", scraped)]
        return words(run_of(*(measured("metrics", who, metric, samples,
                                       bytes=64, in_flight=1)
                              for who, samples in turns)),
                     "metrics scraped, 1 under way: %s"
                     % service.METRICS_MEASURED[metric])

    def test_one_percent_is_allowed(self):
        self.assertEqual(self.judged([100.0] * 3, [101.0] * 3), ["pass"])
        self.assertEqual(self.judged([100.0] * 3, [101.5] * 3), ["FAIL"])
        self.assertEqual(self.judged([100.0] * 3, [101.5] * 3, "server cores"),
                         ["FAIL"])

    def test_difference_of_equal_runs_is_added(self):
        for again in ([103.0] * 3, [97.0] * 3):
            self.assertEqual(self.judged(again, [103.5] * 3), ["pass"])
            self.assertEqual(self.judged(again, [104.5] * 3), ["FAIL"])

    def test_rounds_are_compared_in_pairs(self):
        # One disturbed round of both is nothing of the scraper's.
        turns = [("unscraped", [100.0, 900.0, 100.0]),
                 ("unscraped again", [100.0, 900.0, 100.0]),
                 ("scraped", [101.0, 905.0, 100.5])]
        run = run_of(*(measured("metrics", who, "p50", samples, bytes=64,
                                in_flight=1) for who, samples in turns))
        self.assertEqual(words(run, "metrics scraped, 1 under way: p50"),
                         ["pass"])

    def test_without_its_turns_it_is_skipped(self):
        self.assertEqual(words(run_of(one_record("alpheus", [1.0])),
                               "metrics scraped"), ["skipped"] * 4)


if __name__ == "__main__":
    unittest.main()
