# SPDX-License-Identifier: Apache-2.0
"""cluster: three nodes of the real alpheusd that stand for a log and serve it.

As tools/nemesis/processes/cluster.h: all files are in one temporary folder, and
each cluster has loopback addresses of its own, drawn at random. So concurrent
clusters don't meet, and a node that is started again gets its port back.

Only processes that were started here get a signal, and none outlives the
object. Waits have a deadline; their errors have the nodes' output.

Thread safety: one thread.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

NODES = (1, 2, 3)
PATIENCE_SECONDS = 60.0
_STORY_BYTES_MAX = 1500
_SAID_MAX = 100_000
_PORT = 7401
_SERVICE_PORT = 7411
_METRICS_PORT = 7421
# Not by preexec_fn: the interpreter would fork then, and gRPC's handlers of
# that wait until its threads are idle, which may be never.
_DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


def own_host():
    """Returns an address of the loopback network, drawn anew at each call."""
    draw = random.SystemRandom().randrange
    return f"127.{draw(1, 255)}.{draw(256)}.{draw(1, 255)}"


class Cluster:
    """Nodes 1 to 3, which run at first. `metrics`: where each one shows them,
    if they do. `options_of`: gets a node and its host, and returns more options
    of alpheusd, such as those of TLS."""

    def __init__(self, alpheus, alpheusd, size="32MiB", shows_metrics=False,
                 options_of=lambda node, host: ()):
        self._alpheus, self._alpheusd = alpheus, alpheusd
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.directory = tempfile.mkdtemp(prefix="alpheus-python-", dir=memory)
        self._processes = {}
        self._paused = set()
        self._said = dict.fromkeys(NODES, "")
        hosts = {node: own_host() for node in NODES}
        self._options = {node: tuple(options_of(node, hosts[node]))
                         for node in NODES}
        self.addresses = [f"{hosts[node]}:{_SERVICE_PORT}" for node in NODES]
        self.metrics = [f"{hosts[node]}:{_METRICS_PORT}"
                        for node in NODES] if shows_metrics else []
        try:
            self._write_files(hosts)
            # A node that stands opens a new log at once, also while `format`
            # still talks to it.
            for node in NODES:
                self.start(node, stands=False)
            self.run("format", "--log", "main", "--size", size)
            for node in NODES:
                self.terminate(node)
                self.start(node)
        except BaseException:
            self.close()
            raise

    def address(self, node):
        """Where this node serves the log."""
        return self.addresses[node - 1]

    def start(self, node, stands=True):
        """Starts a node, which stands for the log and serves it. Waits until it
        listens."""
        # A busy machine must not decide who is primary.
        standing = ["--stand", "main", "--serve", self.address(node),
                    "--silence-ms", "2000", *self._options[node]]
        if self.metrics:
            standing += ["--metrics", self.metrics[node - 1]]
        process = subprocess.Popen(
            [*_DIES_WITH_PARENT, self._alpheusd,
             "--cluster", self._path("cluster.toml"), "--node", str(node),
             "--directory", self._path(f"node-{node}"),
             *(standing if stands else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self._processes[node] = process
        listens = threading.Event()
        threading.Thread(target=self._hear, args=(node, process, listens),
                         daemon=True).start()
        if not listens.wait(PATIENCE_SECONDS) or process.poll() is not None:
            raise AssertionError(f"node {node} does not listen: {self.story()}")

    def kill(self, node):
        """Sends SIGKILL, and waits for the end."""
        self._processes[node].kill()
        self._processes.pop(node).wait()
        self._paused.discard(node)

    def terminate(self, node):
        """Ends a node with SIGTERM, in good order."""
        process = self._processes.pop(node)
        process.terminate()
        status = process.wait(5 * PATIENCE_SECONDS)
        if status != 0:
            raise AssertionError(f"node {node} ended with {status}: "
                                 f"{self.story()}")

    def pause(self, node):
        """Stops a node, whose connections stay open."""
        self._processes[node].send_signal(signal.SIGSTOP)
        self._paused.add(node)

    def go_on(self, node):
        """Lets a node that was stopped go on."""
        self._processes[node].send_signal(signal.SIGCONT)
        self._paused.discard(node)

    def reload(self, node):
        """Has a node read its files again."""
        self._processes[node].send_signal(signal.SIGHUP)

    def run(self, command, *arguments):
        """`alpheus COMMAND --cluster FILE ARGUMENTS...`: returns its output."""
        ran = self._run(command, *arguments)
        if ran.returncode != 0:
            raise AssertionError(
                f"alpheus {command} ended with {ran.returncode}: "
                f"{ran.stderr}{self.story()}")
        return ran.stdout

    def await_all_in_sync(self):
        """Waits until all nodes are in sync: only then may any of them go."""

        def all_in_sync():
            ran = self._run("status", "--log", "main", "--json")
            try:
                return json.loads(ran.stdout)["in_sync"] == list(NODES)
            except (ValueError, KeyError):
                return False

        self.await_true(all_in_sync, "all nodes are in sync")

    def primary(self, log):
        """Waits for a primary among the nodes that run; returns its number.
        `log` is a LogClient."""
        found = []

        def is_found():
            for node in set(self._processes) - self._paused:
                try:
                    if log.status(self.address(node)).is_primary:
                        found.append(node)
                        return True
                except Exception:  # it is not there yet
                    pass
            return False

        self.await_true(is_found, "a node is primary")
        return found[0]

    def await_true(self, is_true, what):
        """Waits for an event that only the nodes know, by asking again."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_true():
            if time.monotonic() > end:
                raise AssertionError(f"in vain until {what}: {self.story()}")
            os.sched_yield()

    def story(self, bytes_max=_STORY_BYTES_MAX):
        """Returns the last words of the nodes, for reports of failures."""
        return "".join(
            f"\n--- node {node} said:\n{self._said[node][-bytes_max:]}"
            for node in NODES)

    def close(self):
        """Ends all nodes, and removes the files."""
        for node in list(self._processes):
            self.kill(node)
        shutil.rmtree(self.directory)

    def _run(self, command, *arguments):
        return subprocess.run(
            [self._alpheus, command, "--cluster", self._path("cluster.toml"),
             *arguments], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=5 * PATIENCE_SECONDS)

    def _write_files(self, hosts):
        subprocess.run([self._alpheus, "key", "new", self._path("cluster.key")],
                       check=True, capture_output=True)
        lines = [f'cluster_id = "{uuid.uuid4()}"',
                 f'key_file = "{self._path("cluster.key")}"']
        for node in NODES:
            os.mkdir(self._path(f"node-{node}"))
            lines += ["[[member]]", f"node = {node}",
                      f'address = "{hosts[node]}:{_PORT}"']
        with open(self._path("cluster.toml"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _hear(self, node, process, listens):
        """Takes what a node says, to its end."""
        with process.stdout:
            for line in process.stdout:
                text = line.decode("utf-8", "replace")
                self._said[node] = (self._said[node] + text)[-_SAID_MAX:]
                if f"node {node} listens on " in text:
                    listens.set()
        listens.set()
