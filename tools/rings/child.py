# SPDX-License-Identifier: Apache-2.0
"""child: a command that ends together with the process that runs it.

A command has a process group of its own. A signal that ends this process ends the
group first: a gate or a build that nobody waits for would go on for an hour.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

# A command that does not end in this time is killed.
END_SECONDS = 20


def end_by_signals():
    """From now on SIGTERM and SIGHUP end this process and its command."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _end)


def _end(number, _):
    for again in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(again, signal.SIG_IGN)
    raise SystemExit(128 + number)


class Group:
    """Commands that several threads run, and that end together."""

    def __init__(self):
        self._lock = threading.Lock()
        self._processes = set()
        self._ends = False

    def add(self, process):
        """Ends the calling thread if the group has ended."""
        with self._lock:
            if self._ends:
                raise SystemExit
            self._processes.add(process)

    def discard(self, process):
        with self._lock:
            self._processes.discard(process)

    def end(self):
        """Ends what runs; nothing of the group begins any more."""
        with self._lock:
            self._ends = True
            processes = list(self._processes)
        for process in processes:
            end_group(process)


def run(command, folder, show=None, environment=None, group=None):
    """Runs it and gives each line of its output to `show`; without `show` its
    output is that of this process. Its exit status."""
    output = {} if show is None else {
        "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True,
        "errors": "replace"}
    with subprocess.Popen(command, cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, start_new_session=True,
                          **output) as process:
        try:
            if group is not None:
                group.add(process)
            if show is not None:
                for line in process.stdout:
                    show(line.rstrip("\n"))
            return process.wait()
        except BaseException:
            end_group(process)
            raise
        finally:
            if group is not None:
                group.discard(process)


def end_group(process):
    """Ends all processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def busy_loops(count):
    """Processes that keep a core busy each, until the block ends."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
             for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
