# SPDX-License-Identifier: Apache-2.0
"""child: a command that ends together with the process that runs it.

A command has a process group of its own. A signal that ends this process ends the
group first: a gate or a build that nobody waits for would go on for an hour.
"""

import contextlib
import os
import signal
import subprocess

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


def run(command, folder, show=None, environment=None):
    """Runs it and gives each line of its output to `show`; without `show` its
    output is that of this process. Its exit status."""
    output = {} if show is None else {
        "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True,
        "errors": "replace"}
    with subprocess.Popen(command, cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, start_new_session=True,
                          **output) as process:
        try:
            if show is not None:
                for line in process.stdout:
                    show(line.rstrip("\n"))
            return process.wait()
        except BaseException:
            end_group(process)
            raise


def end_group(process):
    """Ends all processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
