#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""failover_rounds: clients in three languages append to one log while its
primaries go.

usage: failover_rounds.py --build FOLDER [--rounds N] [--seed S] [--stall-ms MS]

Three real nodes serve a log, and a writer in C++, one in Python and one in
JavaScript append to it. In each round the primary is killed (SIGKILL), stopped
(SIGSTOP) or drained, while all writers have records under way. The round goes
on until each of them has records behind the fail-over. Then no record is under
way, and the oracle (oracle.py) compares the whole round with the log, as it is
read over gRPC. The seed decides kinds and numbers; times are the machine's.

A driver in Python: two of the writers are, or are started, by what the tests
of those clients have already (tests/api/client/python/cluster.py). The programs
of tools/nemesis know neither gRPC nor the service's records.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.abspath(__file__))
for _ in range(4):
    ROOT = os.path.dirname(ROOT)
sys.path.insert(0, os.path.join(ROOT, "tests", "api", "client", "python"))

from oracle import Oracle, Violation  # noqa: E402

LOG = "main"
KINDS = ("kill", "stop", "drain")
# An event that has not come for so long will not come.
PATIENCE_SECONDS = 120.0
# Not by preexec_fn, as in cluster.py.
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
UNDER_WAY_MAX = 64  # records of a writer without an answer
BEFORE_MAX = 200  # durable records of each writer before the primary goes
BEHIND_MAX = 50  # and behind the fail-over
STORY_BYTES = 20_000


class Failure(Exception):
    """A round can't go on."""


class Flow:
    """The writers, and what they say. All members by many threads."""

    def __init__(self, commands):
        """`commands`: by the name that records of a writer have."""
        self._changed = threading.Condition()
        self._window = 0  # how many records each one may have under way
        self._failure = ""
        self._ended = set()
        self._durable = dict.fromkeys(commands, 0)  # in this round
        self._behind = dict.fromkeys(commands, 0)  # of them in a later epoch
        self._epoch = 0
        self._given = dict.fromkeys(commands, 0)
        self.oracle = Oracle(list(commands))
        self._processes = {
            name: subprocess.Popen(
                [*DIES_WITH_PARENT, *command], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, bufsize=1, env=environment)
            for name, (command, environment) in commands.items()}
        self._threads = [
            threading.Thread(target=self._hear, args=(name,), daemon=True)
            for name in self._processes]
        for thread in self._threads:
            thread.start()

    def start(self, window, epoch):
        """A round begins: each writer may have so many records under way. What
        is durable in a later epoch than this one is behind the fail-over."""
        with self._changed:
            self._window = window
            self._epoch = epoch
            self._durable = dict.fromkeys(self._durable, 0)
            self._behind = dict.fromkeys(self._behind, 0)
            for name in self._processes:
                self._give(name)

    def await_durable(self, count):
        """Waits until each writer has so many durable records in this round."""
        self._await(lambda: min(self._durable.values()) >= count,
                    f"each writer has {count} durable records")

    def await_behind(self, count):
        """The same for records behind the fail-over."""
        self._await(lambda: min(self._behind.values()) >= count,
                    f"each writer has {count} records behind the fail-over")

    def stop(self):
        """Gives no more records, and waits until none is under way."""
        with self._changed:
            self._window = 0
        self._await(self._is_quiet, "all records have an answer")

    def finish(self):
        """Ends the writers, which have nothing under way."""
        for process in self._processes.values():
            process.stdin.close()
        self._await(lambda: len(self._ended) == len(self._processes),
                    "all writers end")
        for name, process in self._processes.items():
            status = process.wait(PATIENCE_SECONDS)
            if status != 0:
                raise Failure(f"writer {name} ended with {status}")

    def close(self):
        """Ends all writers at once."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join()

    def _is_quiet(self):
        return not any(map(self.oracle.unanswered, self._processes))

    def _await(self, is_true, what):
        with self._changed:
            came = self._changed.wait_for(
                lambda: self._failure or is_true(), PATIENCE_SECONDS)
            if self._failure:
                raise Failure(self._failure)
            if not came:
                counts = ", ".join(
                    f"{name}: {self._given[name]} given, "
                    f"{self.oracle.unanswered(name)} without an answer, "
                    f"{self._durable[name]} durable in this round, "
                    f"{self._behind[name]} of them behind the fail-over"
                    for name in self._processes)
                raise Failure(f"in vain until {what}: {counts}")

    def _give(self, name):
        """Lets a writer have as many records under way as it may. Lock held."""
        room = self._window - self.oracle.unanswered(name)
        if room <= 0:
            return
        self._given[name] += room
        self.oracle.given(name, self._given[name])
        try:
            self._processes[name].stdin.write(f"{self._given[name]}\n")
        except OSError:
            pass  # it has ended, which its thread sees

    def _hear(self, name):
        """Takes what a writer says, to its end."""
        with self._processes[name].stdout as said:
            for line in said:
                with self._changed:
                    self._take(name, line.split())
                    self._give(name)
                    self._changed.notify_all()
        with self._changed:
            if name not in self._ended and not self._failure:
                self._failure = f"writer {name} ended before it was told to"
            self._changed.notify_all()

    def _take(self, name, words):
        """Takes a line of a writer (writer.cc). Lock held."""
        if words[0] == "durable":
            number, epoch, lsn, unknown = map(int, words[1:])
            self.oracle.is_durable(name, number, (epoch, lsn), unknown)
            self._durable[name] += 1
            self._behind[name] += epoch > self._epoch
        elif words[0] == "never":
            number, unknown = map(int, words[1:])
            self.oracle.is_never(name, number, unknown)
        elif words[0] == "end":
            self._ended.add(name)
        else:
            self._failure = f"writer {name}: {' '.join(words)}"


class Rounds:
    """The rounds of one cluster."""

    def __init__(self, client, nodes, log, flow, draw):
        self._log_client = client.LogClient
        self._unreachable = client.AlpheusError
        self._nodes = nodes
        self._log = log
        self._flow = flow
        self._draw = draw
        self._block = []  # kinds of the next rounds
        self._read_from = 0  # LSN where the round before has begun
        self.of_kind = dict.fromkeys(KINDS, 0)
        self.unknown_of_kind = dict.fromkeys(KINDS, 0)

    def run(self):
        """One round. Returns a sentence on it. Errors: Violation, Failure."""
        if not self._block:  # each kind comes once in three rounds
            self._block = self._draw.sample(KINDS, len(KINDS))
        kind = self._block.pop()
        is_woken = self._draw.random() < 0.5  # before its clients have left
        window = self._draw.randint(1, UNDER_WAY_MAX)
        before = self._draw.randint(1, BEFORE_MAX)
        behind = self._draw.randint(1, BEHIND_MAX)
        oracle, flow = self._flow.oracle, self._flow
        durable, unknown = oracle.durable, oracle.unknown
        self._nodes.await_all_in_sync()
        primary = self._nodes.primary(self._log)
        status = self._log.status(self._nodes.address(primary))
        flow.start(window, status.epoch)
        flow.await_durable(before)
        if kind == "kill":
            self._nodes.kill(primary)
        elif kind == "stop":
            self._nodes.pause(primary)
            if is_woken:
                self._nodes.primary(self._log)
                self._nodes.go_on(primary)
        else:
            self._nodes.run("drain", "--log", LOG, str(primary))
        flow.await_behind(behind)
        flow.stop()
        self._restore(kind, primary, is_woken)
        self._judge(status.next_lsn, kind == "drain")
        self.of_kind[kind] += 1
        self.unknown_of_kind[kind] += oracle.unknown - unknown
        what = kind
        if kind == "stop":
            what = "stop, woken early" if is_woken else "stop, left by clients"
        return (f"{what} of node {primary}, {window} records under way; "
                f"{oracle.durable - durable} durable, "
                f"{oracle.unknown - unknown} unknown for a while")

    def end(self):
        """Ends the writers, and looks for their records once more."""
        self._flow.finish()
        self._judge(self._read_from, False)

    def _restore(self, kind, primary, is_woken):
        if kind == "kill":
            self._nodes.start(primary)
        elif kind == "drain":  # it stands no longer until it is started again
            self._nodes.terminate(primary)
            self._nodes.start(primary)
        elif not is_woken:
            self._nodes.go_on(primary)

    def _judge(self, begun_at, is_clean):
        """`begun_at`: LSN where the round has begun. The round after it is
        compared from there on."""
        self._flow.oracle.end_round(self._read(), is_clean)
        if begun_at > 1:
            self._log.cleanup(begun_at - 1)
        self._read_from = begun_at


    def _read(self):
        """Reads records, from the primary of the latest epoch that a writer
        has heard of. A node that was stopped, and is woken, takes itself for
        the primary still, and may show a log that ends earlier."""
        latest = self._flow.oracle.epoch
        found = []

        def is_found():
            for address in self._nodes.addresses:
                try:
                    status = self._log.status(address)
                except self._unreachable:
                    continue
                if status.is_primary and status.epoch >= latest:
                    found.append(address)
            return found

        self._nodes.await_true(is_found, f"a primary has epoch {latest}")
        records = []
        with self._log_client(found[:1], LOG) as log:
            for record in log.read(self._read_from):
                name, _, number = record.data.decode().partition(" ")
                records.append((name, int(number), tuple(record.place)))
        return records


def commands_of(build, log_arguments):
    """Returns the commands of the writers and their environment, by the name
    that their records have; and why one is left out."""
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.join(build, "api", "client", "python")
    commands = {
        "cc": ([os.path.join(build, "bin", "service_rounds_writer"),
                *log_arguments], None),
        "py": ([sys.executable, "-B", os.path.join(here, "writer.py"),
                *log_arguments], {**os.environ, "PYTHONPATH": package}),
    }
    # Node.js looks for packages above a source: this is a link beside them.
    folder = os.path.join(build, "tests", "javascript")
    writer = os.path.join(folder, os.path.relpath(here, ROOT), "writer.mjs")
    if not shutil.which("node"):
        return commands, "Node.js is missing"
    if not os.path.exists(os.path.join(folder, "installed")) or \
            not os.path.exists(writer):
        return commands, (f"no packages of npm are in {folder}. tools/dev test "
                          "installs them")
    commands["js"] = (
        ["node", writer, *log_arguments],
        {**os.environ, "NODE_OPTIONS":
         "--preserve-symlinks --preserve-symlinks-main"})
    return commands, ""


def tell_all(rounds, flow, count):
    """Tells what the rounds have shown: a violation would have ended them."""
    oracle = flow.oracle
    kinds = ", ".join(
        f"{rounds.of_kind[kind]} of kind {kind} with "
        f"{rounds.unknown_of_kind[kind]} outcomes unknown for a while"
        for kind in KINDS)
    print(f"{count} rounds of fail-over with {len(oracle.names)} clients "
          f"({', '.join(oracle.names)}): {kinds}")
    print(f"  all {oracle.durable} durable records were in the log, each once, "
          f"at its place and in order, and none of {oracle.never} that were "
          "proven absent; no outcome is unresolved", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int)
    # A machine that is busy must not have clients leave a primary that is
    # being drained.
    parser.add_argument("--stall-ms", type=int, default=10_000,
                        help="a client leaves a node that is silent for so long")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.stall_ms < 1:
        parser.error("--rounds and --stall-ms must be 1 or more")
    seed = arguments.seed
    if seed is None:
        seed = random.SystemRandom().randrange(1 << 30)
    build = os.path.abspath(arguments.build)
    sys.path.insert(0, os.path.join(build, "api", "client", "python"))
    import alpheus
    import cluster
    print(f"seed {seed}", flush=True)
    # Its nodes and writers end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    nodes = cluster.Cluster(os.path.join(build, "bin", "alpheus"),
                            os.path.join(build, "bin", "alpheusd"))
    flow = None
    number = 0
    try:
        commands, why = commands_of(
            build, [LOG, str(arguments.stall_ms), *nodes.addresses])
        if why:
            print(f"skipped: the writer in JavaScript, because {why}",
                  flush=True)
        with alpheus.LogClient(nodes.addresses, LOG) as log:
            flow = Flow(commands)
            rounds = Rounds(alpheus, nodes, log, flow, random.Random(seed))
            for number in range(1, arguments.rounds + 1):
                print(f"round {number}: {rounds.run()}", flush=True)
            rounds.end()
            tell_all(rounds, flow, arguments.rounds)
    except (Violation, Failure, AssertionError, alpheus.AlpheusError) as error:
        print(f"FAILED in round {number} with seed {seed}: "
              f"{type(error).__name__}: {error}\n{nodes.story(STORY_BYTES)}",
              flush=True)
        return 1
    finally:
        if flow is not None:
            flow.close()
        nodes.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
