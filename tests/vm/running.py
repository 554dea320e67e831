# SPDX-License-Identifier: Apache-2.0
"""running: a guest that runs beside its caller, who types at its console.

Idea: the guest's script ends with console.sh, so that whoever has several
guests says in one place what each of them does, and in which order.
"""
import re
import threading
import time

from guest import GuestError

# Guests are slow, and slower on busy machines: one may take minutes to boot. A
# wait that is longer than this would never end.
WAIT_S = 1500
# The last lines of a console that are shown, without prompts that say only "go
# on".
SHOWN_LINES = 300


class Process:
    """A command that was typed: what it has said so far, and its status."""

    def __init__(self, command, hear):
        self.command = command
        self.hear = hear
        self.said = []
        self.status = None

    def has_said(self, text):
        return any(text in line for line in self.said)


class Running:
    """A guest that was booted. Thread safety: one thread calls its members;
    what it is given to call is called by another."""

    def __init__(self, guest, script, timeout_s):
        self.guest = guest
        self.lines = []
        self.changed = threading.Condition()
        self.processes = {}
        self.is_ready = False
        self.has_ended = False
        self.error = None
        guest.unpack_kernel()  # not by two threads at once
        self.thread = threading.Thread(target=self.run,
                                       args=(script, timeout_s))
        self.thread.start()

    def run(self, script, timeout_s):
        try:
            self.guest.run(script, timeout_s, self.hear)
        except Exception as error:  # of whatever hears: the waiter is told
            self.error = error
        with self.changed:
            self.has_ended = True
            self.changed.notify_all()

    def hear(self, line):
        """Takes a line of the console."""
        said = re.match(r"([\w.-]+)([:=]) ?(.*)", line)
        with self.changed:
            self.lines.append(line)
            # The boot loader leaves its last line open.
            self.is_ready |= line.endswith("console: ready")
            process = said and self.processes.get(said.group(1))
            if process and said.group(2) == "=":
                process.status = int(said.group(3))
            elif process:
                process.said.append(said.group(3))
                process.hear(said.group(3))
            self.changed.notify_all()

    def wait(self, is_so, what):
        """Waits until it is so; asked again with each line that is heard."""
        end = time.monotonic() + WAIT_S
        with self.changed:
            while not is_so():
                if self.has_ended or time.monotonic() > end:
                    raise GuestError(
                        f"guest {self.guest.name}: waited for {what}, but "
                        f"{self.error or 'the time is over'}")
                self.changed.wait(1)

    def await_console(self):
        """To be called before anything is typed."""
        self.wait(lambda: self.is_ready, "its console")

    def type(self, line):
        try:
            self.guest.say(line)
        except (OSError, ValueError) as error:  # it has ended
            raise GuestError(f"guest {self.guest.name}: {error}") from error

    def start(self, name, command, hear=lambda line: None):
        """Runs a command of the guest's shell, and returns. `hear` gets each
        line that it says. No two have the same name."""
        process = self.processes[name] = Process(command, hear)
        self.type(f"run {name} {command}")
        return process

    def tell(self, name, line):
        """Gives a line to the standard input of what was started so."""
        self.type(f"tell {name} {line}")

    def end_of(self, process):
        """Waits for its end; its status."""
        self.wait(lambda: process.status is not None, process.command)
        return process.status

    def do(self, command):
        """Runs a command to its end, which must be good; what it said."""
        process = self.start(f"do{len(self.processes)}", command)
        if self.end_of(process) != 0:
            raise GuestError(f"guest {self.guest.name}: status "
                             f"{process.status} of {command}")
        return process.said

    def cut_power(self):
        """Returns when the guest is gone. It may have ended before, and it may
        not have begun."""
        while self.thread.is_alive():
            if self.guest.qemu:
                self.guest.cut_power()
            self.thread.join(0.1)

    def switch_off(self):
        """Ends it in good order."""
        self.type("off")
        self.thread.join()
        if self.error:
            raise self.error

    def console(self, is_noise=lambda line: False):
        """The end of what its console has shown, for people."""
        with self.changed:
            lines = [line for line in self.lines if not is_noise(line)]
        return "\n".join((f"the console of guest {self.guest.name}:",
                          *lines[-SHOWN_LINES:]))
