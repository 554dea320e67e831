#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are the aims of a fail-over judged by what a run of bench_failover measured?"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import failover  # noqa: E402
import results  # noqa: E402

MACHINE = {"cpu_model": "a core", "cores": [0, 1], "memory_bytes": 2 ** 30,
           "kernel": "Linux", "compiler": "GNU", "build_type": "Release",
           "load_average": 0.0}


def measured(scenario, samples, mib=64, candidate="alpheus", metric="total"):
    ordered = sorted(samples)
    return {"scenario": scenario, "candidate": candidate, "metric": metric,
            "unit": "ms", "parameters": {"log_mib": mib}, "samples": samples,
            "median": ordered[len(ordered) // 2], "min": ordered[0],
            "max": ordered[-1], "details": {"begun_again": 0}}


def run_of(*measurements, others=0.0):
    scenarios = {m["scenario"] for m in measurements}
    return results.Results({
        "benchmark": "failover", "schema_version": results.SCHEMA_VERSION,
        "preset": "full", "commit": "c", "folder": "/dev/shm", "rounds": 100,
        "machine": MACHINE, "measurements": list(measurements),
        "distributions": [], "skips": [],
        "disturbances": [{"scenario": s, "seconds": 1.0,
                          "share_of_others": others} for s in scenarios]})


def words(run, scenario):
    return [v.word for v in failover.judge(run)
            if v.what.startswith(failover.SCENARIOS[scenario])]


class AimsTest(unittest.TestCase):

    def test_p99_is_judged_at_its_limits(self):
        for scenario, (limit, aim) in failover.LIMITS_MS.items():
            for p99, expected in ((aim, ["pass", "pass"]),
                                  (aim + 0.1, ["pass", "FAIL"]),
                                  (limit, ["pass", "FAIL"]),
                                  (limit + 0.1, ["FAIL", "FAIL"])):
                # One of a hundred may be slower.
                run = run_of(measured(scenario, [p99] * 99 + [9999.0]))
                self.assertEqual(words(run, scenario)[:2], expected)
            run = run_of(measured(scenario, [1.0] * 98 + [limit + 1] * 2))
            self.assertEqual(words(run, scenario)[:2], ["FAIL", "FAIL"])

    def test_fewer_rounds_judge_nothing_and_say_so(self):
        run = run_of(measured("kill", [1.0] * 99))
        self.assertEqual(words(run, "kill")[:2], ["skipped"] * 2)
        self.assertIn("99 rounds, needs 100", failover.aims(run))

    def test_other_sizes_and_candidates_are_not_judged_for_it(self):
        run = run_of(measured("kill", [9999.0] * 100, mib=16),
                     measured("kill", [9999.0] * 100, candidate="etcd"))
        self.assertEqual(words(run, "kill")[:2], ["skipped"] * 2)

    def test_large_log_is_judged_by_the_difference_of_medians(self):
        for large, expected in ((120.0, "pass"), (120.1, "FAIL")):
            run = run_of(measured("drain", [100.0] * 5, mib=16),
                         measured("drain", [large] * 5, mib=1024))
            self.assertEqual(words(run, "drain"), [expected])
        run = run_of(measured("drain", [100.0] * 5, mib=16))
        self.assertEqual(words(run, "drain"), ["skipped"])

    def test_others_on_the_cores_void_it_in_sight(self):
        run = run_of(measured("kill", [1.0] * 100), others=0.11)
        self.assertIn("VOID: kill: others had 11 %", failover.aims(run))
        run = run_of(measured("kill", [1.0] * 100), others=0.10)
        self.assertNotIn("VOID", failover.aims(run))


class TextTest(unittest.TestCase):

    def test_quantile_is_a_sample_with_that_share_at_or_below_it(self):
        samples = [float(i) for i in range(100, 0, -1)]
        self.assertEqual(failover.quantile(samples, 0.99), 99.0)
        self.assertEqual(failover.quantile(samples, 0.5), 50.0)
        self.assertEqual(failover.quantile([7.0], 0.99), 7.0)

    def test_table_has_parts_and_failed_openings(self):
        run = run_of(
            measured("kill", [30.0, 40.0]),
            measured("kill", [1.25, 1.25], metric="choice"),
            measured("kill", [0.0, 2.0], metric=failover.FAILED),
            dict(measured("kill", [1000.0], candidate="etcd"),
                 details={"begun_again": 3}))
        text = failover.to_text(run)
        self.assertIn("After SIGKILL of the primary", text)
        row = [line.split() for line in text.splitlines()
               if line.split()[:1] == ["alpheus"]][0]
        self.assertEqual(row, ["alpheus", "64", "MiB", "2", "40.0", "40.0",
                               "40.0", "-", "-", "1.25", "-", "-", "2", "0"])
        peer = [line.split() for line in text.splitlines()
                if line.split()[:1] == ["etcd"]][0]
        self.assertEqual(peer[-2:], ["-", "3"])
        self.assertIn("1000.0", text)
        self.assertNotIn("SIGSTOP of the primary: ms", text)


if __name__ == "__main__":
    unittest.main()
