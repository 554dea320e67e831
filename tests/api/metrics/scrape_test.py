#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics of three daemons, as Prometheus gets them: by promtool, by a
Prometheus server of its own, and against the document.

usage: scrape_test.py ALPHEUS ALPHEUSD PROMTOOL PROMETHEUS ROOT
       [UNITTEST ARGUMENTS], with the built client and tests/api/client/python
       in PYTHONPATH
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

import alpheus
import cluster
import grpc
from alpheus.v1 import log_service_pb2 as pb
from alpheus.v1 import log_service_pb2_grpc as pb_grpc

PATIENCE = cluster.PATIENCE_SECONDS
_SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def get(url):
    """Returns the body; the addresses are of this machine, so no proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


def scrape(address):
    return get(f"http://{address}/metrics")


def value(text, name, **labels):
    """Returns the value of the one sample, or None."""
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found and found[1] == name and dict(
                _LABEL.findall(found[2] or "")) == labels:
            return float(found[3])
    return None


def families(text):
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


class ScrapeTest(unittest.TestCase):

    # All in one cluster: it takes longer to start than the cases do.
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = cluster.Cluster(ALPHEUS, ALPHEUSD, shows_metrics=True)
        cls.addClassCleanup(cls.cluster.close)
        cls.log = alpheus.LogClient(cls.cluster.addresses)
        cls.addClassCleanup(cls.log.close)
        cls.log.append(b"first").result(PATIENCE)
        cls.cluster.await_all_in_sync()

    def primary(self):
        """Returns where the metrics of the primary are."""
        return self.cluster.metrics[self.cluster.primary(self.log) - 1]

    def around(self, action):
        """Returns what the primary shows before and after. If another node
        becomes primary meanwhile, which a busy machine may bring about, all of
        it is done again."""
        for _ in range(10):
            address = self.primary()
            before = scrape(address)
            action()
            after = scrape(address)
            epochs = [value(text, "alpheus_log_epoch", log="main")
                      for text in (before, after)]
            if epochs[0] is not None and epochs[0] == epochs[1]:
                return before, after
        raise AssertionError(f"no primary stays: {self.cluster.story()}")

    def scrapes(self):
        return [scrape(address) for address in self.cluster.metrics]

    def test_numbers_follow_the_appends(self):
        def append():
            for _ in range(5):
                self.log.append(b"0123456789").result(PATIENCE)

        before, after = self.around(append)

        def grown(name, **labels):
            return value(after, name, **labels) - value(before, name, **labels)

        main = {"log": "main"}
        self.assertEqual(grown("alpheus_service_appended_records_total", **main),
                         5)
        self.assertEqual(grown("alpheus_service_appended_bytes_total", **main), 50)
        self.assertEqual(grown("alpheus_log_next_lsn", **main), 5)
        self.assertEqual(grown("alpheus_log_durable_lsn", **main), 5)
        self.assertEqual(grown("alpheus_log_ring_bytes", **main), 0)
        self.assertEqual(value(after, "alpheus_log_replicas", **main), 3)

    def test_open_clients_are_those_that_are_listed(self):
        # More than one, if the client had to begin again on a busy machine.
        listed = []

        def are_listed():
            address = self.cluster.address(self.cluster.primary(self.log))
            with grpc.insecure_channel(address) as channel:
                stub = pb_grpc.LogServiceStub(channel)
                try:
                    listed[:] = stub.ListClients(
                        pb.ListClientsRequest(log="main"),
                        timeout=PATIENCE).clients
                except grpc.RpcError:  # it is no primary any more
                    return False
            return True

        _, after = self.around(lambda: self.cluster.await_true(
            are_listed, "the primary lists its clients"))
        self.assertGreaterEqual(len(listed), 1)
        self.assertEqual(value(after, "alpheus_service_open_clients", log="main"),
                         len(listed))

    def test_the_client_has_one_stream(self):
        self.log.append(b"on its stream").result(PATIENCE)
        # A stream that the client has left may end a moment later.
        self.cluster.await_true(
            lambda: value(scrape(self.primary()), "alpheus_grpc_open_streams",
                          method="AppendStream") == 1,
            "one stream is open")

    def test_nodes_answer(self):
        self.cluster.await_true(
            lambda: all(value(text, "alpheus_node_responsive") == 1
                        for text in self.scrapes()),
            "the threads of all nodes answer a scrape")

    def test_one_node_is_primary_and_two_follow(self):
        main = {"log": "main"}

        def shows():
            texts = self.scrapes()
            primaries = [value(text, "alpheus_log_is_primary", **main)
                         for text in texts]
            # The primary has its node's replica.
            served = [value(text, "alpheus_replica_served", **main)
                      for text in texts]
            followed = [value(text, "alpheus_replica_persisted_lsn", **main)
                        for text in texts]
            in_sync = [value(text, "alpheus_log_in_sync_replicas", **main)
                       for text in texts]
            return (sorted(primaries) == [0, 0, 1] and in_sync.count(3) == 1
                    and all(is_served == 1 - is_primary
                            for is_served, is_primary in zip(served, primaries))
                    and followed.count(None) == 1)

        # At any moment on a calm machine; a node that is slow joins again.
        self.cluster.await_true(shows, "one node is primary and two follow")

    def test_one_of_many_requests_is_timed(self):
        name = "alpheus_service_append_stage_seconds_count"

        def append():
            for appended in [self.log.append(b"x") for _ in range(300)]:
                appended.result(PATIENCE)

        before, after = self.around(append)
        for stage in ("appended", "durable", "answered"):
            labels = {"log": "main", "stage": stage}
            self.assertGreater(value(after, name, **labels),
                               value(before, name, **labels))

    def test_promtool_finds_nothing(self):
        for text in self.scrapes():
            checked = subprocess.run(
                [PROMTOOL, "check", "metrics"], input=text, text=True,
                capture_output=True, check=False, timeout=PATIENCE)
            self.assertEqual((checked.returncode, checked.stdout,
                              checked.stderr), (0, "", ""))

    def test_document_has_what_nodes_show(self):
        with open(os.path.join(ROOT, "docs/use/metrics.md"),
                  encoding="utf-8") as file:
            documented = set(
                re.findall(r"^\| `(\w+)` \|", file.read(), re.MULTILINE))

        def shown():
            return set().union(*map(families, self.scrapes()))

        self.assertEqual(shown() - documented, set())
        # A log shows nothing while no node has it.
        self.primary()
        self.cluster.await_true(
            lambda: documented <= shown(),
            f"the nodes show {sorted(documented - shown())}")

    def test_nothing_else_is_served(self):
        with self.assertRaises(urllib.error.HTTPError) as error:
            get(f"http://{self.cluster.metrics[0]}/")
        self.assertEqual(error.exception.code, 404)

    def test_prometheus_scrapes_the_nodes(self):
        self.log.append(b"for Prometheus").result(PATIENCE)
        appended = sum(
            value(text, "alpheus_service_appended_records_total", log="main")
            for text in self.scrapes())
        with tempfile.TemporaryDirectory(prefix="alpheus-prometheus-") as folder:
            prometheus = Prometheus(folder, self.cluster.metrics)
            self.addCleanup(prometheus.close)
            self.cluster.await_true(
                lambda: prometheus.query("sum(up)") == ["3"],
                "Prometheus scrapes all nodes")
            self.cluster.await_true(
                lambda: prometheus.query(
                    "sum(alpheus_service_appended_records_total)"
                    ) == [f"{appended:g}"],
                f"Prometheus knows of {appended:g} records")
            self.cluster.await_true(
                lambda: prometheus.query("sum(alpheus_log_is_primary)")
                == ["1"], "Prometheus knows of one primary")
            # Each alert can be evaluated on these metrics.
            healths = []

            def are_evaluated():
                healths[:] = prometheus.healths()
                return "unknown" not in healths

            self.cluster.await_true(are_evaluated, "all alerts are evaluated")
            self.assertEqual(healths, ["ok"])
            prometheus.close()


class Prometheus:
    """A Prometheus server that scrapes these addresses each second."""

    def __init__(self, folder, targets):
        # No other server has an address of the loopback network drawn anew.
        self._address = f"{cluster.own_host()}:9090"
        self._said = open(os.path.join(folder, "said"), "w+", encoding="utf-8")
        config = os.path.join(folder, "prometheus.yml")
        rules = os.path.join(ROOT, "tools/samples/alpheus_alerts.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({  # which is YAML
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                           "evaluation_interval": "1s"},
                "rule_files": [rules],
                "scrape_configs": [{"job_name": "alpheus", "static_configs":
                                    [{"targets": targets}]}]}, file)
        subprocess.run([PROMTOOL, "check", "config", config], check=True,
                       capture_output=True, timeout=PATIENCE)
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", PROMETHEUS,
             f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self._address}"],
            stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said)

    def query(self, expression):
        """Returns the values; None while it does not answer."""
        asked = urllib.parse.urlencode({"query": expression})
        answer = self._get(f"/api/v1/query?{asked}")
        return answer and [sample["value"][1] for sample in answer["result"]]

    def healths(self):
        answer = self._get("/api/v1/rules")
        if answer is None:
            return {"unknown"}
        return {rule["health"] for group in answer["groups"]
                for rule in group["rules"]}

    def close(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(PATIENCE)
        self._said.close()

    def _get(self, path):
        if self._process.poll() is not None:
            self._said.seek(0)
            raise AssertionError(f"Prometheus has ended: {self._said.read()}")
        try:
            return json.loads(get(f"http://{self._address}{path}"))["data"]
        except OSError:  # it does not listen yet, or reads its storage
            return None


if __name__ == "__main__":
    ALPHEUS, ALPHEUSD, PROMTOOL, PROMETHEUS, ROOT = sys.argv[1:6]
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
