# SPDX-License-Identifier: Apache-2.0
"""Servers of somebody else's, as Debian packages them: started in a folder of
their own, killed, paused, and ended by their process ids."""

import ctypes
import os
import signal
import socket
import subprocess
import time

START_TIMEOUT_S = 20.0
PR_SET_PDEATHSIG = 1


class NotThere(Exception):
    """A member does not answer, or refuses."""


def _set_port_aside():
    with socket.create_server(("127.0.0.1", 0)) as listener:  # SO_REUSEADDR
        client = socket.create_connection(listener.getsockname())
        listener.accept()[0].close()  # first: the port's end is in TIME_WAIT
        client.close()
        return listener.getsockname()[1]


def free_ports(count):
    """Ports for listeners with SO_REUSEADDR; for a minute the kernel chooses
    none of them for anybody else."""
    return [_set_port_aside() for _ in range(count)]


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One process, which may be started again on the same files."""

    def __init__(self, arguments, folder):
        self.folder = folder
        self._arguments = arguments
        self._log = folder + ".log"
        self._process = None
        os.makedirs(folder, exist_ok=True)

    def start(self):
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._arguments, stdout=log, stderr=log,
                preexec_fn=_die_with_parent)

    def runs(self):
        return self._process is not None and self._process.poll() is None

    def kill(self):
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()

    def pause(self):
        self._process.send_signal(signal.SIGSTOP)

    def await_stopped(self):
        def is_stopped():
            path = "/proc/%d/stat" % self._process.pid
            with open(path, encoding="ascii", errors="replace") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] == "T"
        wait_until(is_stopped, "a process that stands still")

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def said(self, *words):
        """The last line of its log that has one of these words, or ""."""
        with open(self._log, "rb") as log:
            lines = log.read().decode("utf-8", "replace").splitlines()
        found = [line for line in lines
                 if any(word in line for word in words)]
        return found[-1].strip() if found else ""


def wait_until(check, what, timeout_s=START_TIMEOUT_S):
    """The first true result of `check`, which may raise NotThere."""
    end = time.monotonic() + timeout_s
    why = "false"
    while time.monotonic() < end:
        try:
            found = check()
            if found:
                return found
        except NotThere as error:
            why = str(error)
        time.sleep(0.02)
    raise NotThere("%s: not within %.0f s: %s" % (what, timeout_s, why))


def await_in_file(paths_of, value, what):
    """Waits until one of the files has all of it: a server writes some of its
    files later than it answers. `paths_of` names the files at each look."""
    def has_it():
        try:
            for path in paths_of():
                with open(path, "rb") as file:
                    if value in file.read():
                        return True
        except FileNotFoundError as error:
            raise NotThere(str(error)) from error
        return False
    wait_until(has_it, "the record in %s" % what)


def patch(path, find, change):
    """Replaces the last place of `find` in a file by `change` of it, and drops
    nothing else. True if it was there."""
    with open(path, "r+b") as file:
        data = file.read()
        place = data.rfind(find)
        if place < 0:
            return False
        file.seek(place)
        file.write(change(data[place:place + len(find)]))
    return True


def flip(found):
    return found[:-1] + bytes([found[-1] ^ 1])
