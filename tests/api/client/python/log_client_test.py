#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client in Python against three daemons: what it appends and reads, and
what comes of it when its primary is killed, ended or stopped.

usage: log_client_test.py ALPHEUS ALPHEUSD [UNITTEST ARGUMENTS], with the built
package in PYTHONPATH
"""

import concurrent.futures
import queue
import sys
import threading
import unittest

import alpheus
import cluster
import grpc
from alpheus.v1 import log_service_pb2 as pb
from alpheus.v1 import log_service_pb2_grpc as pb_grpc

PATIENCE = cluster.PATIENCE_SECONDS
# Nobody listens there.
NOWHERE = ["127.0.0.1:1", "127.0.0.1:2"]


class ClusterCase(unittest.TestCase):
    """Cases that have the cluster, and one client, to themselves."""

    options = {}
    cluster = None

    def setUp(self):
        self.cluster = cluster.Cluster(*PROGRAMS)
        self.addCleanup(self.cluster.close)
        self.log = alpheus.LogClient(self.cluster.addresses, **self.options)
        self.addCleanup(self.log.close)

    def run(self, result=None):
        """Tells what the nodes said, if a case fails."""
        failures = len(result.failures) + len(result.errors)

        def tell():
            has_failed = len(result.failures) + len(result.errors) > failures
            if has_failed and self.cluster is not None:
                print(self.cluster.story())

        self.addCleanup(tell)
        return super().run(result)

    def read_all(self, **more):
        return [record.data for record in self.log.read(**more)]


def follow(log, into, **more):
    """Starts a thread that puts what a tail brings into a queue, at last the
    error that it ended with, or None. Returns the tail and the thread."""
    tail = log.tail(**more)

    def run():
        try:
            for record in tail:
                into.put(record)
            into.put(None)
        except alpheus.AlpheusError as error:
            into.put(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return tail, thread


class LogClientTest(ClusterCase):

    # All in one cluster: it takes longer to start than the cases do.
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = cluster.Cluster(*PROGRAMS)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        self.log = alpheus.LogClient(self.cluster.addresses)
        self.addCleanup(self.log.close)
        self.from_lsn = self.log.status().next_lsn

    def read_all(self, **more):
        return super().read_all(from_lsn=self.from_lsn, **more)

    def test_lines_are_read_back_each_once_and_in_order(self):
        lines = [b"line %d" % i for i in range(2000)]
        futures = [self.log.append(line) for line in lines]
        self.log.flush(PATIENCE)
        places = [future.result(0).place for future in futures]
        records = list(self.log.read(self.from_lsn))
        self.assertEqual([record.data for record in records], lines)
        self.assertEqual([record.place for record in records], places)
        self.assertEqual([record.sequence for record in records],
                         list(range(1, 2001)))

    def test_batch_is_one_record(self):
        self.log.append(b"before", tag=1)
        place = self.log.append_batch([b"a", b"", b"bc"], 4).result(
            PATIENCE).place
        (record,) = self.log.read(self.from_lsn, tags=[4])
        self.assertEqual(record.parts, (b"a", b"", b"bc"))
        self.assertEqual(record.data, b"abc")
        self.assertEqual((record.place, record.tag), (place, 4))

    def test_record_is_durable_once_it_is_forced(self):
        first = self.log.append(
            b"a", durability=alpheus.Durability.ACCEPTED).result(PATIENCE)
        self.assertGreaterEqual(self.log.force(first.place), first.place.lsn)
        for durability in alpheus.Durability:
            place = self.log.append(
                b"b", durability=durability).result(PATIENCE).place
            self.assertGreaterEqual(self.log.wait_durable(place), place.lsn)
        exposed = self.log.exposure()
        self.assertGreater(exposed.records_max, 0)
        self.assertLessEqual(exposed.records, exposed.records_max)
        other = alpheus.Place(place.epoch + 1, place.lsn)
        with self.assertRaises(alpheus.OutOfLog):
            self.log.force(other)

    def test_read_ends_where_it_is_told_to(self):
        places = [self.log.append(b"%d" % i).result(PATIENCE).place
                  for i in range(5)]
        self.assertEqual(
            [record.data for record in self.log.read(places[1].lsn,
                                                     places[3].lsn)],
            [b"1", b"2", b"3"])
        self.assertEqual(
            [record.data for record in self.log.read(
                places[3].lsn, consistency=alpheus.Consistency.LOCAL)],
            [b"3", b"4"])

    def test_status_is_confirmed_if_it_is_asked_for(self):
        self.assertTrue(self.log.status(confirm=True).is_confirmed)
        self.assertFalse(self.log.status().is_confirmed)

    def test_append_whose_condition_does_not_hold_is_not_in_the_log(self):
        lsn = self.log.append(b"a").result(PATIENCE).place.lsn
        refused = self.log.append(b"b", expected_lsn=lsn)
        good = self.log.append(b"c", expected_lsn=lsn + 1)
        behind = [self.log.append(b"d%d" % i) for i in range(50)]
        with self.assertRaises(alpheus.ConditionFailed) as caught:
            refused.result(PATIENCE)
        self.assertEqual(caught.exception.next_lsn, lsn + 1)
        self.assertEqual(good.result(PATIENCE).place.lsn, lsn + 1)
        for future in behind:
            future.result(PATIENCE)
        self.assertEqual(self.read_all(),
                         [b"a", b"c"] + [b"d%d" % i for i in range(50)])

    def test_append_that_is_to_follow_its_own_sees_another_client(self):
        self.log.append(b"a").result(PATIENCE)
        self.log.append(b"b", only_if_last=True).result(PATIENCE)
        with alpheus.LogClient(self.cluster.addresses) as other:
            other.append(b"c")
        with self.assertRaises(alpheus.ConditionFailed):
            self.log.append(b"d", only_if_last=True).result(PATIENCE)
        self.assertEqual(self.read_all(), [b"a", b"b", b"c"])

    def test_tail_brings_what_is_appended_meanwhile(self):
        records = queue.Queue()
        self.log.append(b"0").result(PATIENCE)
        tail, thread = follow(self.log, records, from_lsn=self.from_lsn)
        self.assertEqual(records.get(timeout=PATIENCE).data, b"0")
        for i in range(1, 200):
            self.log.append(b"%d" % i)
            if i % 50 == 0:  # it waits now and then
                self.log.flush(PATIENCE)
        for i in range(1, 200):
            self.assertEqual(records.get(timeout=PATIENCE).data, b"%d" % i)
        tail.close()
        self.assertIsNone(records.get(timeout=PATIENCE))
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())

    def test_tail_needs_little_credit_and_shows_tags_that_are_asked_for(self):
        with alpheus.LogClient(self.cluster.addresses, credit_bytes=10) as log:
            with log.tail(self.from_lsn, tags=[1, 2]) as tail:
                for i in range(100):
                    self.log.append(bytes(20 * (i % 3)), tag=i % 4)
                self.log.flush(PATIENCE)
                for i in range(100):
                    if i % 4 in (1, 2):
                        record = next(tail)
                        self.assertEqual((record.tag, len(record.data)),
                                         (i % 4, 20 * (i % 3)))

    def test_request_that_fits_into_no_record_is_an_error(self):
        size = self.log.status().payload_bytes_max + 1
        with self.assertRaises(alpheus.InvalidRequest):
            self.log.append(bytes(size)).result(PATIENCE)
        # gRPC would end the stream, and this client would resume for ever.
        with self.assertRaises(alpheus.InvalidRequest):
            self.log.append(bytes(16 << 20))
        self.log.append(b"a").result(PATIENCE)
        self.assertEqual(self.read_all(), [b"a"])

    def test_record_larger_than_a_message_of_grpc_is_read(self):
        size = min(6 << 20, self.log.status().payload_bytes_max)
        self.log.append_batch([bytes(size // 2), bytes(size // 2)]).result(
            PATIENCE)
        (record,) = self.log.read(self.from_lsn)
        self.assertEqual(len(record.data), size // 2 * 2)
        self.log.cleanup(record.place.lsn)

    def test_callback_may_append_and_does_not_wait(self):
        seen = queue.Queue()

        def append_more(_):
            seen.put(self.log.append(b"b"))
            try:
                self.log.flush()
            except RuntimeError as error:
                seen.put(error)

        self.log.append(b"a").add_done_callback(append_more)
        seen.get(timeout=PATIENCE).result(PATIENCE)
        self.assertIsInstance(seen.get(timeout=PATIENCE), RuntimeError)
        self.assertEqual(self.read_all(), [b"a", b"b"])

    def test_threads_may_share_a_client(self):
        def append(thread):
            for i in range(300):
                self.log.append(b"%d/%d" % (thread, i))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(append, range(4)))
        self.log.flush(PATIENCE)
        seen = self.read_all()
        self.assertEqual(len(seen), 1200)
        for thread in range(4):
            of_it = [data for data in seen
                     if data.startswith(b"%d/" % thread)]
            self.assertEqual(of_it,
                             [b"%d/%d" % (thread, i) for i in range(300)])

    def test_cleaned_records_are_gone_and_readers_learn_where_to_go_on(self):
        places = [self.log.append(b"%d" % i).result(PATIENCE).place
                  for i in range(4)]
        head = self.log.cleanup(places[1].lsn)
        self.assertEqual(head, places[1].lsn + 1)
        with self.assertRaises(alpheus.OutOfLog) as caught:
            list(self.log.read(places[0].lsn))
        self.assertEqual(caught.exception.head_lsn, head)
        self.assertEqual(
            [record.data for record in self.log.read(head)], [b"2", b"3"])
        with self.assertRaises(alpheus.OutOfLog):
            self.log.cleanup(places[3].lsn + 1000)

    def test_log_that_is_not_there_is_an_error_that_stays(self):
        with alpheus.LogClient(self.cluster.addresses, "missing") as log:
            with self.assertRaises(alpheus.NotFound) as caught:
                log.append(b"a").result(PATIENCE)
            self.assertIn("missing", str(caught.exception))
            with self.assertRaises(alpheus.NotFound):
                log.append(b"a")
            with self.assertRaises(alpheus.NotFound):
                log.read().__next__()
            with self.assertRaises(alpheus.NotFound):
                log.status(self.cluster.address(1))

    def test_nodes_say_who_is_primary(self):
        primary = self.cluster.primary(self.log)
        for node in cluster.NODES:
            status = self.log.status(self.cluster.address(node))
            self.assertEqual(status.is_primary, node == primary)

    def test_reader_that_does_not_append_is_no_client_of_the_log(self):
        before = self.log.status().clients
        with alpheus.LogClient(self.cluster.addresses) as log:
            list(log.read())
            self.assertEqual(log.status().clients, before)

    # A lost answer costs no second client.
    def test_begin_with_the_same_key_gets_the_same_client(self):
        before = self.log.status().clients
        address = self.cluster.address(self.cluster.primary(self.log))
        with grpc.insecure_channel(address) as channel:
            stub = pb_grpc.LogServiceStub(channel)

            def begin(key):
                return stub.OpenClient(
                    pb.OpenClientRequest(log="main", key=key),
                    timeout=PATIENCE).client

            first = begin(b"k" * 16)
            self.assertEqual(begin(b"k" * 16), first)
            self.assertEqual(self.log.status().clients, before + 1)
            other = begin(b"o" * 16)
            self.assertNotEqual(other, first)
            self.assertEqual(begin(b"k" * 16), first)
            self.assertNotEqual(begin(b""), begin(b""))
            self.assertEqual(self.log.status().clients, before + 4)
            with self.assertRaises(grpc.RpcError) as caught:
                begin(b"short")
            self.assertEqual(caught.exception.code(),
                             grpc.StatusCode.INVALID_ARGUMENT)

    def test_client_that_was_closed_says_so(self):
        tail = self.log.tail(self.from_lsn)
        self.log.close()
        self.log.close()
        for use in (lambda: self.log.append(b"a"), self.log.read,
                    self.log.status, lambda: next(tail)):
            with self.assertRaises(alpheus.Closed):
                use()
        self.log.flush(0)

    def test_client_that_is_closed_ends_its_tails(self):
        records = queue.Queue()
        _, thread = follow(self.log, records, from_lsn=self.from_lsn)
        self.log.append(b"a").result(PATIENCE)
        records.get(timeout=PATIENCE)
        self.log.close()
        self.assertIsInstance(records.get(timeout=PATIENCE), alpheus.Closed)
        thread.join(PATIENCE)

    def test_callback_may_close_the_client(self):
        closed = queue.Queue()
        future = self.log.append(b"a")
        future.add_done_callback(lambda _: closed.put(self.log.close()))
        closed.get(timeout=PATIENCE)
        self.assertIsNotNone(future.result(0).place)
        with self.assertRaises(alpheus.Closed):
            self.log.append(b"b")


class NoNodeTest(unittest.TestCase):
    """Cases without any node."""

    def setUp(self):
        self.log = alpheus.LogClient(
            NOWHERE, limits=alpheus.Limits(unanswered_max=2),
            search_seconds=0.05)
        self.addCleanup(self.log.close)

    def test_request_that_was_never_sent_can_be_cancelled(self):
        future = self.log.append(b"a")
        self.assertTrue(future.cancel())
        self.assertTrue(future.cancel())
        self.assertTrue(future.cancelled())
        done, _ = concurrent.futures.wait([future], PATIENCE)
        self.assertEqual(done, {future})
        self.log.flush(PATIENCE)

    def test_no_more_is_kept_than_allowed(self):
        first = self.log.append(b"a")
        self.log.append(b"b")
        with self.assertRaises(alpheus.Busy):
            self.log.append(b"c", timeout=0)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.log.append, b"c")
            first.cancel()
            self.assertFalse(waiting.result(PATIENCE).done())

    def test_flush_in_vain_says_why(self):
        self.log.append(b"a")
        with self.assertRaises(alpheus.NotFinished) as caught:
            self.log.flush(0.1)
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertIn("1 requests", str(caught.exception))

    def test_client_that_ends_tells_that_nothing_was_sent(self):
        future = self.log.append(b"a")
        self.log.close()
        self.assertIsInstance(future.exception(0), alpheus.NotAppended)

    def test_wait_for_room_ends_when_the_client_is_closed(self):
        for data in (b"a", b"b"):
            self.log.append(data)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.log.append, b"c")
            self.log.close()
            with self.assertRaises(alpheus.Closed):
                waiting.result(PATIENCE)

    def test_search_for_a_primary_ends(self):
        for use in (self.log.status, lambda: next(self.log.read()),
                    lambda: self.log.cleanup(1)):
            with self.assertRaises(alpheus.NoPrimary) as caught:
                use()
            self.assertIn("UNAVAILABLE", str(caught.exception))

    def test_bad_arguments_are_refused(self):
        for make in (lambda: alpheus.LogClient([]),
                     lambda: alpheus.LogClient(NOWHERE, answer_seconds=0),
                     lambda: alpheus.LogClient(
                         NOWHERE, limits=alpheus.Limits(unanswered_max=2000)),
                     lambda: self.log.append(b"a", tag=-1),
                     lambda: self.log.append(b"a", expected_lsn=-1)):
            self.assertRaises(ValueError, make)
        self.assertRaises(TypeError, alpheus.LogClient, "127.0.0.1:1")
        self.assertRaises(TypeError, self.log.append, "text")
        self.assertRaises(alpheus.InvalidRequest, self.log.append_batch, [])


class FailOverTest(ClusterCase):

    ROUNDS = 3

    COUNT = 4000  # requests of a round

    def setUp(self):
        super().setUp()
        self.futures = []

    def append_through(self, interrupt):
        """Appends by sequence, and calls `interrupt` when half are taken: more
        than may be under way. Waits until all have their answers."""
        begin = len(self.futures)
        for i in range(begin, begin + self.COUNT):
            if i == begin + self.COUNT // 2:
                interrupt()
            self.futures.append(self.log.append(b"%d" % i,
                                                timeout=5 * PATIENCE))
        self.log.flush(5 * PATIENCE)

    def check_all(self):
        """Every request is in the log once, in order, and was answered so."""
        for future in self.futures:
            self.assertIsInstance(future.result(0), alpheus.Appended)
        records = list(self.log.read())
        self.assertEqual([record.data for record in records],
                         [b"%d" % i for i in range(len(self.futures))])
        for future, record in zip(self.futures, records):
            # A primary may only say that a request is in the log.
            self.assertIn(future.result(0).place, (record.place, None))

    def check_followed(self, followed):
        """A tail has brought every request once, in order."""
        for i in range(len(self.futures)):
            self.assertEqual(followed.get(timeout=PATIENCE).data, b"%d" % i)

    # Goal: nothing is lost, doubled or moved, and every future is resolved.
    # Method: the primary is killed while requests are under way, and started
    # again, several times. A tail reads meanwhile.
    def test_killed_primary_loses_nothing_and_doubles_nothing(self):
        followed = queue.Queue()
        follow(self.log, followed)
        for _ in range(self.ROUNDS):
            self.cluster.await_all_in_sync()
            killed = self.cluster.primary(self.log)
            self.append_through(lambda: self.cluster.kill(killed))
            self.assertNotEqual(self.cluster.primary(self.log), killed)
            self.cluster.start(killed)
        self.check_all()
        self.check_followed(followed)

    # P-Z3. The last message of a stream says what was admitted.
    def test_ended_primary_hands_its_clients_over(self):
        followed = queue.Queue()
        follow(self.log, followed)
        self.cluster.await_all_in_sync()
        ended = self.cluster.primary(self.log)
        self.append_through(lambda: self.cluster.terminate(ended))
        self.assertNotEqual(self.cluster.primary(self.log), ended)
        self.check_all()
        self.check_followed(followed)


class SilentPrimaryTest(FailOverTest):
    """Nodes that are stopped: their connections stay open, and say nothing."""

    options = {"stall_seconds": 0.5, "answer_seconds": 0.5}
    test_killed_primary_loses_nothing_and_doubles_nothing = None
    test_ended_primary_hands_its_clients_over = None

    def test_client_leaves_a_primary_that_says_nothing(self):
        followed = queue.Queue()
        follow(self.log, followed)
        self.cluster.await_all_in_sync()
        stopped = self.cluster.primary(self.log)
        self.append_through(lambda: self.cluster.pause(stopped))
        self.assertNotEqual(self.cluster.primary(self.log), stopped)
        self.check_followed(followed)
        self.cluster.go_on(stopped)
        self.check_all()

    def test_client_that_ends_tells_of_what_is_unknown(self):
        self.log.append(b"a").result(PATIENCE)
        for node in cluster.NODES:
            self.cluster.pause(node)
        sent = self.log.append(b"b")
        self.cluster.await_true(sent.running, "the request is sent")
        self.assertFalse(sent.cancel())
        self.log.close()
        self.assertIsInstance(sent.exception(0), alpheus.OutcomeUnknown)
        self.assertEqual(sent.exception(0).sequence, 2)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
