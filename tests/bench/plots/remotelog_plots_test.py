#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The taxonomy's findings, judged from made-up latencies at both sides of each
limit.

usage: remotelog_plots_test.py
"""

import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "plots"))

import remotelog  # noqa: E402
import remotelog_findings as findings  # noqa: E402
import results  # noqa: E402

ESTIMATE = "dmp,off,dram,compound,write,estimate"


def is_message(domain, ddio, rqwrb, operation):
    """As the tables have it."""
    if domain == "dmp" and ddio == "on":
        return True
    return operation == "send" and rqwrb == "dram"


def world():
    """A run in which everything is as the text has it, and its messages."""
    one_sided = {"dmp": 2100, "mhp": 2100, "wsp": 1600}
    compound_one_sided = {"dmp": 2400, "mhp": 2000, "wsp": 1650}
    latencies, messages = {}, set()
    for domain in findings.DOMAINS:
        for ddio in ("on", "off"):
            for rqwrb in ("dram", "pm"):
                for operation in findings.OPERATIONS:
                    where = (domain, ddio, rqwrb)
                    single = findings.name_of(*where, "singleton", operation)
                    pair = findings.name_of(*where, "compound", operation)
                    if is_message(*where, operation):
                        messages |= {single, pair}
                        latencies[single] = 3000
                        latencies[pair] = 2450 if operation == "send" else 6000
                    else:
                        latencies[single] = one_sided[domain]
                        latencies[pair] = compound_one_sided[domain]
                        if (domain, operation) == ("dmp", "writeimm"):
                            latencies[pair] = 4300
    latencies[ESTIMATE] = 2300
    return latencies, messages


def judged(change=lambda name, ns: ns):
    latencies, messages = world()
    changed = {name: change(name, ns) for name, ns in latencies.items()}
    return findings.judge(findings.Rows(changed, messages))


def finding(found, start):
    matching = [f for f in found if f.text.startswith(start)]
    assert len(matching) == 1, start
    return matching[0]


def times(part, factor):
    """Changes the rows that have all the words."""
    words = set(part.split(","))
    return lambda name, ns: ns * factor if words <= set(
        name.split(",")) else ns


def equal_to(ns_before, factor):
    """Changes the rows that took so long."""
    return lambda _, ns: ns * factor if ns == ns_before else ns


class FindingsTest(unittest.TestCase):

    def test_all_hold_in_a_world_as_the_text_has_it(self):
        for found in judged():
            self.assertEqual(found.word, "reproduced",
                             (found.text, found.found))

    def check(self, start, part, holds, fails, change=times):
        for factor, word in ((holds, "reproduced"), (fails, "not reproduced")):
            self.assertEqual(finding(judged(change(part, factor)), start).word,
                             word, (start, factor))

    def test_each_limit(self):
        self.check("singletons: one-sided up to", 1600, 1.12, 1.13, equal_to)
        self.check("singletons: WSP without", "wsp,singleton", 1.09, 1.11)
        self.check("singletons: WSP 25 %", "wsp,singleton", 1.04, 1.06)
        self.check("compound, DMP with DDIO: WRITE over",
                   "dmp,on,compound,write", 0.82, 0.81)
        self.check("compound, DMP with DDIO: WRITEIMM",
                   "dmp,on,compound,writeimm", 0.82, 0.81)
        self.check("compound, MHP", "mhp,dram,compound,send", 0.98, 0.95)
        self.check("compound, WSP", "wsp,dram,compound,send", 1.04, 1.06)
        self.check("SEND with buffers", "wsp,pm,singleton,send", 1.09, 1.11)
        self.check("compounds: WSP close", "wsp,compound", 1.01, 1.03)
        self.check("DDIO has no effect", "mhp,off", 1.04, 1.06)
        self.check("compound, DMP: without DDIO", ESTIMATE, 1.8, 1.9)
        self.check("singletons, DDIO: WRITE", "mhp,on,singleton,write",
                   1.28, 1.30)

    def test_both_kinds_of_buffers_must_be_over_twice(self):
        found = judged(times("dmp,on,pm,compound,write", 0.8))
        self.assertEqual(
            finding(found, "compound, DMP with DDIO: WRITE over").word,
            "not reproduced")

    def test_estimates_are_no_rows(self):
        rows = findings.Rows(*world())
        self.assertEqual(len(list(rows.find())), 72)
        self.assertIn(ESTIMATE, rows.latencies)


def measured(scenario, candidate, metric, value, details=None, **parameters):
    return {"scenario": scenario, "candidate": candidate, "metric": metric,
            "unit": "ns", "parameters": parameters, "samples": [value],
            "median": value, "min": value, "max": value,
            "details": details or {}}


def over_verbs(run, change=lambda name, ns: ns):
    """Adds the same world over verbs, three rounds, without atomic WRITE."""
    latencies, messages = world()
    latencies[ESTIMATE.replace("dram", "pm")] = latencies[ESTIMATE]
    run.data.update(transport="verbs", rounds=3)
    for name, ns in latencies.items():
        if name + ",estimate" in latencies:
            run.skips.append({"scenario": "fabric", "what": name,
                              "why": "no atomic WRITE"})
            continue
        m = measured("fabric", name, "p50", change(name, 50 * ns), {
            "responder_message_ns": 1.0 if name in messages else 0.0})
        m["samples"] = [m["median"]] * 2 + [50 * ns]
        run.data["measurements"].append(m)
    return run


def run_of(variations):
    latencies, messages = world()
    measurements = []
    for name, ns in latencies.items():
        details = {"round_trips": 1, "responder_background_ns": 1.0,
                   "responder_message_ns": 1.0 if name in messages else 0.0}
        measurements += [
            measured("append", name, "p50", ns, details, clients=1),
            measured("append", name, "mean", ns, clients=1),
            measured("append", name, "rate", 1e9 / ns, clients=1)]
    for name, metric, change in variations:
        measurements.append(measured(
            "sensitivity", name, metric, 1.0,
            {row: change(row, ns) for row, ns in latencies.items()}))
    return results.Results({
        "schema_version": results.SCHEMA_VERSION, "commit": "c",
        "preset": "full", "machine": {"cores": [0]}, "skips": [],
        "measurements": measurements, "distributions": [],
        "constants": [{"name": "wire", "value": 275.0, "unit": "ns",
                       "origin": "published", "what": "way",
                       "source": "some"}]})


class TextTest(unittest.TestCase):

    def test_constant_that_turns_a_finding_is_named(self):
        text = remotelog.to_text(run_of([
            ("wire", "times 2", times("wsp,singleton", 2)),
            ("all", "draw 1", times("nothing", 1))]))
        line = [l for l in text.splitlines()
                if "WSP without FLUSH takes" in l and "turned" not in l][-1]
        self.assertIn("0/1", line)
        self.assertIn("1/1", line)
        self.assertIn("wire times 2", line)
        self.assertIn("Of 12 findings 12 hold here; in a draw of all at most 12",
                      text)

    def test_reason_is_told_where_a_finding_does_not_hold(self):
        run = run_of([])
        self.assertNotIn("why:", remotelog.to_text(run))
        for m in run.find("append", None, "mean"):
            if m["candidate"].startswith("mhp"):
                m["median"] *= 1.5
        self.assertIn("why:", remotelog.to_text(run))

    def test_row_and_its_estimate_are_both_told(self):
        text = remotelog.to_text(run_of([]))
        self.assertIn("write estimate", text)
        self.assertIn("paper: the taxonomy", text)


class FabricTextTest(unittest.TestCase):

    def test_findings_are_told_beside_simulated_time(self):
        text = remotelog.to_text(over_verbs(run_of([])))
        _, _, fabric = text.partition("over verbs, beside simulated time")
        self.assertNotIn("not reproduced", fabric)
        self.assertEqual(fabric.count("not judged"), 2)
        self.assertEqual(fabric.count("holds in 3 of 3 rounds"), 10)
        self.assertEqual(fabric.count("simulated: reproduced"), 12)

    def test_estimate_stands_for_the_row_and_is_marked(self):
        text = remotelog.to_text(over_verbs(run_of([])))
        self.assertEqual(text.count("115.0~"), 2)
        self.assertIn("does not run there: dmp,off,dram,compound,write "
                      "dmp,off,pm,compound,write: no atomic WRITE", text)

    def test_what_differs_there_has_a_reason_and_its_rounds(self):
        text = remotelog.to_text(over_verbs(
            run_of([]), times("mhp,dram,compound,send", 0.5)))
        _, _, fabric = text.partition("over verbs, beside simulated time")
        _, _, finding = fabric.partition("compound, MHP")
        self.assertIn("holds in 1 of 3 rounds", finding)
        self.assertIn("three packets", finding)

    def test_without_all_rows_nothing_is_judged(self):
        run = over_verbs(run_of([]))
        run.data["measurements"][:] = [
            m for m in run.data["measurements"]
            if not (m["scenario"] == "fabric" and ",pm," in m["candidate"])]
        text = remotelog.to_text(run)
        self.assertIn("Over verbs", text)
        self.assertNotIn("beside simulated time", text)


if __name__ == "__main__":
    unittest.main()
