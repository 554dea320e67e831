# SPDX-License-Identifier: Apache-2.0
"""A Redis with two replicas, its file synced with each command, records added
with XADD and WAIT: one is acknowledged if at least one replica has it."""

import os
import socket

from peer_process import NotThere, Server, free_ports, wait_until


class Connection:
    """As much of the protocol as is needed."""

    def __init__(self, port, timeout_s=10.0):
        try:
            self._socket = socket.create_connection(("127.0.0.1", port),
                                                    timeout_s)
        except OSError as error:
            raise NotThere(str(error)) from error
        self._file = self._socket.makefile("rb")

    def close(self):
        self._file.close()
        self._socket.close()

    def __call__(self, *words):
        text = b"*%d\r\n" % len(words)
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            text += b"$%d\r\n%s\r\n" % (len(word), word)
        try:
            self._socket.sendall(text)
            return self._reply()
        except OSError as error:
            raise NotThere(str(error)) from error

    def _reply(self):
        line = self._file.readline().rstrip(b"\r\n")
        if not line:
            raise NotThere("the connection was closed")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise NotThere(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._file.read(
                int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        return rest


class RedisTrio:
    name = "Redis"

    def __init__(self, folder):
        self.ports = free_ports(3)
        self.servers = [
            Server(["redis-server", "--port", str(port), "--bind", "127.0.0.1",
                    "--dir", os.path.join(folder, "r%d" % i), "--appendonly",
                    "yes", "--appendfsync", "always", "--save", "",
                    "--auto-aof-rewrite-percentage", "0",
                    "--repl-diskless-sync-delay", "0"]
                   + (["--replicaof", "127.0.0.1", str(self.ports[0])]
                      if i else []), os.path.join(folder, "r%d" % i))
            for i, port in enumerate(self.ports)]

    def start(self, members=(0, 1, 2)):
        for i in members:
            self.servers[i].start()

    def ready(self, primary=0, replicas=2):
        wait_until(lambda: self.tell(primary, "WAIT", replicas, 100)
                   >= replicas and self.online(primary) >= replicas,
                   "replicas of %d" % primary)

    def online(self, member):
        return self.tell(member, "INFO", "replication").count(b"state=online")

    def tell(self, member, *words):
        connection = Connection(self.ports[member])
        try:
            return connection(*words)
        finally:
            connection.close()

    def add(self, member, value, timeout_s=5.0):
        """True: acknowledged by two of three."""
        connection = Connection(self.ports[member])
        try:
            connection("XADD", "log", "*", "r", value)
            return connection("WAIT", 1, int(timeout_s * 1000)) >= 1
        finally:
            connection.close()

    def read(self, member):
        return [entry[1][1] for entry in
                self.tell(member, "XRANGE", "log", "-", "+")]

    def follow(self, member, primary):
        if primary is None:
            self.tell(member, "REPLICAOF", "NO", "ONE")
        else:
            self.tell(member, "REPLICAOF", "127.0.0.1", self.ports[primary])

    def log_of(self, member):
        folder = os.path.join(self.servers[member].folder, "appendonlydir")
        return [os.path.join(folder, name) for name in os.listdir(folder)
                if name.endswith(".incr.aof")]

    def end(self):
        for server in self.servers:
            server.kill()
