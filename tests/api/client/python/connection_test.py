#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections of the client in Python to a node that is far away.

usage: connection_test.py, with the built package in PYTHONPATH
"""

import socket
import threading
import unittest

import alpheus

from security_test import PATIENCE, Node

ROUND_TRIPS = 500


class FarNode:
    """A way to a node that holds the bytes of its connections, until it lets
    them go."""

    def __init__(self, address):
        host, _, port = address.partition(":")
        self._node = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listening.getsockname()[1]
        self.has_connection = threading.Event()
        self.lets_go = threading.Event()
        self.connections = 0
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.lets_go.set()
        for one in [self._listening, *self._sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed already
            one.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(self._node)
            self._sockets += [near, far]
            self.connections += 1
            self.has_connection.set()
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, target),
                                 daemon=True).start()

    def _pass_on(self, source, target):
        try:
            while data := source.recv(1 << 16):
                self.lets_go.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # an end was closed


class ConnectionTest(unittest.TestCase):

    # Goal: a node may be far away. A client once gave up each connection that
    # was not there within milliseconds, and began another one.
    # Method: the first bytes take as long as 500 calls to a near node.
    def test_connection_may_take_its_time(self):
        node = Node()
        self.addCleanup(node.close)
        far = FarNode(node.address)
        self.addCleanup(far.close)
        log = alpheus.LogClient([far.address], token="alph_00",
                                answer_seconds=PATIENCE)
        self.addCleanup(log.close)
        future = log.append(b"a")
        self.assertTrue(far.has_connection.wait(PATIENCE))
        near = alpheus.LogClient([node.address], token="alph_00")
        self.addCleanup(near.close)
        for _ in range(ROUND_TRIPS):
            near.status()
        far.lets_go.set()
        self.assertIsInstance(future.result(PATIENCE), alpheus.Appended)
        self.assertEqual(far.connections, 1)


if __name__ == "__main__":
    unittest.main()
