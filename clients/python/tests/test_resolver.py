"""Resolvers against replicas of the service that come, fail and go."""

import logging
import random
import socket
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from endpoint_resolver import NoAnswer, Reason, Resolver, StaleMember, backoff, file_format, messages, watcher
from endpoint_resolver.file_format import Saved
from endpoint_resolver.held import Held
from endpoint_resolver.set_name import SetName

from .samples import changes, endpoint, problem, whole
from .service import Service

# For each wait, in seconds: on a machine that is busy.
DEADLINE = 20
# Also where a proxy is configured.
OPTIONS = [("grpc.enable_http_proxy", 0)]
WEB = SetName("default", "web")
SAVED_POD = file_format.Endpoint("eu", "saved", ("10.9.9.9",), (file_format.Port("http", 80),), True, True)
DAYS = 3 * 24 * 3600


def pods(answer):
    return [endpoint.pod for endpoint in answer.endpoints]


def unused_address():
    """An address at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{unused.getsockname()[1]}"


class ResolverTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.file = self.directory / "default.web.json"

    def serve(self, *responses, **arguments):
        service = Service(*responses, **arguments)
        self.addCleanup(service.stop)
        return service

    def resolver(self, *servers, **arguments):
        resolver = Resolver(servers, self.directory, channel_options=OPTIONS, **arguments)
        self.addCleanup(resolver.close)
        return resolver

    def save(self):
        saved = Saved(WEB, 7, int(time.time()) - DAYS, (SAVED_POD,))
        self.file.write_bytes(file_format.encode(saved))

    def until(self, handle, condition):
        """Waits for `condition` of what the handle holds."""
        done = handle._wait_until(lambda: condition(handle.held), DEADLINE)
        self.assertTrue(done, f"waited in vain: {handle.held}")

    def until_problem(self, handle, reason):
        self.until(handle, lambda held: held.problem is not None and held.problem.reason is reason)


class Following(ResolverTest):
    def test_d2_the_first_answer_and_changes_arrive(self):
        stale = (messages.StaleMember("us", None),)
        service = self.serve(whole(10, endpoint("a"), stale=stale))
        handle = self.resolver(service.address).endpoints("default/web")
        answer = handle.wait(DEADLINE)
        self.assertEqual((answer.set, answer.version, pods(answer), answer.age), ("default/web", 10, ["a"], 0.0))
        self.assertEqual((answer.stale_members, answer.problem), ((StaleMember("us", None),), None))
        self.assertEqual(handle.addresses("http"), ("10.0.0.1:8080",))
        service.publish(whole(11, endpoint("a"), endpoint("b")), changes(10, 11, (endpoint("b"),)))
        self.assertEqual(pods(handle.wait_for_change(10, DEADLINE)), ["a", "b"])
        service.publish(whole(12, endpoint("b")), changes(11, 12, (), (messages.EndpointKey("eu", "a"),)))
        self.assertEqual(pods(handle.wait_for_change(11, DEADLINE)), ["b"])
        self.assertEqual(service.requests, [{"web": 0}])

    def test_d2_a_set_that_becomes_empty_is_empty(self):
        service = self.serve(whole(10, endpoint("a")))
        handle = self.resolver(service.address).endpoints("default/web")
        handle.wait(DEADLINE)
        service.publish(whole(11))
        self.assertEqual(handle.wait_for_change(10, DEADLINE).endpoints, ())
        self.assertEqual(handle.addresses("http"), ())

    def test_d2_changes_that_do_not_follow_make_it_ask_for_the_whole(self):
        service = self.serve(whole(10, endpoint("a")))
        handle = self.resolver(service.address).endpoints("default/web")
        handle.wait(DEADLINE)
        service.publish(whole(12, endpoint("c")), changes(11, 12, (endpoint("c"),)))
        self.assertEqual(pods(handle.wait_for_change(10, DEADLINE)), ["c"])
        self.assertEqual(service.requests, [{"web": 0}, {"web": 0}])

    def test_d2_another_set_goes_on_from_the_known_version_of_the_first(self):
        service = self.serve(whole(10, endpoint("a")), whole(20, endpoint("b"), name="api"))
        resolver = self.resolver(service.address)
        web = resolver.endpoints("default/web")
        web.wait(DEADLINE)
        api = resolver.endpoints("default/api")
        self.assertEqual(pods(api.wait(DEADLINE)), ["b"])
        self.until(web, lambda held: held.followed)
        self.assertEqual(service.requests, [{"web": 0}, {"web": 10, "api": 0}])
        self.assertIs(resolver.endpoints("default/web"), web)

    def test_d2_sets_asked_for_together_share_a_call(self):
        service = self.serve(*(whole(1, endpoint("a"), name=f"s{number}") for number in range(300)))
        resolver = self.resolver(service.address)
        with mock.patch.object(watcher, "SETTLE_TIME", 0.5):
            handles = [resolver.endpoints(f"default/s{number}") for number in range(300)]
        for handle in handles:
            self.assertEqual(pods(handle.wait(DEADLINE)), ["a"])
        self.assertLess(len(service.requests), 30)

    def test_d2_more_sets_than_a_call_may_have_are_several_calls(self):
        service = self.serve(*(whole(1, endpoint("a"), name=f"s{number}") for number in range(5)))
        with mock.patch.object(watcher, "MAX_SETS", 2):
            resolver = self.resolver(service.address)
            for handle in [resolver.endpoints(f"default/s{number}") for number in range(5)]:
                self.assertEqual(pods(handle.wait(DEADLINE)), ["a"])
        self.assertTrue(all(len(request) <= 2 for request in service.requests))


class Failures(ResolverTest):
    def test_d3_it_starts_from_the_disk_while_the_service_is_away(self):
        self.save()
        handle = self.resolver(unused_address()).endpoints("default/web")
        answer = handle.current()
        self.assertEqual((answer.version, answer.endpoints), (7, (SAVED_POD,)))
        self.assertTrue(DAYS <= answer.age < DAYS + DEADLINE, answer.age)
        self.until_problem(handle, Reason.UNAVAILABLE)
        self.assertEqual(handle.wait(0).endpoints, (SAVED_POD,))

    def test_d3_a_service_that_comes_back_replaces_what_the_disk_had(self):
        self.save()
        address = unused_address()
        resolver = self.resolver(address)
        handle = resolver.endpoints("default/web")
        self.until_problem(handle, Reason.UNAVAILABLE)
        service = self.serve(whole(10, endpoint("a")), port=int(address.split(":")[1]))
        answer = handle.wait_for_change(7, DEADLINE)
        self.assertEqual((pods(answer), answer.problem, answer.age), (["a"], None, 0.0))
        self.assertEqual(service.requests, [{"web": 0}])
        resolver.close()
        self.assertEqual(file_format.decode(WEB, self.file.read_bytes()).version, 10)

    def test_d3_a_killed_service_leaves_the_endpoints_and_their_age_grows(self):
        service = self.serve(whole(10, endpoint("a")))
        handle = self.resolver(service.address).endpoints("default/web")
        before = handle.wait(DEADLINE)
        service.stop()
        self.until_problem(handle, Reason.UNAVAILABLE)
        first = handle.current()
        second = handle.current()
        self.assertEqual((second.version, second.endpoints), (10, before.endpoints))
        self.assertTrue(0.0 < first.age < second.age, (first.age, second.age))

    def test_d3_the_same_replica_goes_on_from_the_known_version(self):
        service = self.serve(whole(10, endpoint("a")))
        handle = self.resolver(service.address).endpoints("default/web")
        handle.wait(DEADLINE)
        service.stop()
        self.until_problem(handle, Reason.UNAVAILABLE)
        again = self.serve(whole(10, endpoint("a")), port=service.port)
        self.until(handle, lambda held: held.followed and held.problem is None)
        self.assertEqual(again.requests, [{"web": 10}])

    def test_d3_another_replica_takes_over_with_the_whole(self):
        services = [self.serve(whole(10, endpoint("a"))), self.serve(whole(20, endpoint("b")))]
        handle = self.resolver(*(service.address for service in services)).endpoints("default/web")
        first = handle.wait(DEADLINE)
        used, other = services if first.version == 10 else reversed(services)
        used.stop()
        second = handle.wait_for_change(first.version, DEADLINE)
        self.assertEqual({first.version: pods(first), second.version: pods(second)}, {10: ["a"], 20: ["b"]})
        self.assertEqual(other.requests, [{"web": 0}])

    def test_d3_clients_spread_over_the_replicas(self):
        services = [self.serve(whole(10, endpoint("a"))), self.serve(whole(20, endpoint("b")))]
        versions = set()
        # That 40 clients use the same of two has the probability 2^-39.
        for _ in range(40):
            with Resolver([service.address for service in services], channel_options=OPTIONS) as resolver:
                versions.add(resolver.endpoints("default/web").wait(DEADLINE).version)
            if len(versions) == 2:
                break
        self.assertEqual(versions, {10, 20})

    def test_d3_a_problem_keeps_the_endpoints(self):
        service = self.serve(whole(10, endpoint("a")))
        handle = self.resolver(service.address).endpoints("default/web")
        handle.wait(DEADLINE)
        for number, reason in [(1, Reason.NOT_FOUND), (2, Reason.INVALID), (3, Reason.WAITING)]:
            service.publish(problem(number, "why"))
            self.until_problem(handle, reason)
            answer = handle.current()
            self.assertEqual((pods(answer), answer.version, answer.problem.message), (["a"], 10, "why"))
        service.publish(whole(10, endpoint("a")), changes(10, 10))
        self.until(handle, lambda held: held.followed)
        self.assertIsNone(handle.current().problem)

    def test_d3_a_replica_that_waits_is_left_for_one_that_knows(self):
        waiting = self.serve(problem(messages.REASON_WAITING))
        knowing = self.serve(whole(20, endpoint("b")))
        handle = self.resolver(waiting.address, knowing.address).endpoints("default/web")
        self.assertEqual(pods(handle.wait(DEADLINE)), ["b"])

    def test_d3_if_all_replicas_wait_it_stays_at_one(self):
        services = [self.serve(problem(messages.REASON_WAITING)) for _ in range(2)]
        handle = self.resolver(*(service.address for service in services)).endpoints("default/web")
        for service in services:
            service.wait_for(lambda requests: len(requests) == 1)
        for service in services:
            service.publish(whole(20, endpoint("b")))
        self.assertEqual(pods(handle.wait(DEADLINE)), ["b"])
        self.assertEqual([service.requests for service in services], [[{"web": 0}], [{"web": 0}]])

    def test_d3_a_malformed_response_keeps_the_endpoints_and_the_next_replica_is_asked(self):
        service = self.serve(whole(10, endpoint("a")))
        handle = self.resolver(service.address).endpoints("default/web")
        handle.wait(DEADLINE)
        service.publish_bytes(messages.SetId("default", "web"), b"\xff")
        self.until(handle, lambda held: held.problem is not None and "malformed response" in held.problem.message)
        self.assertEqual(pods(handle.current()), ["a"])
        service.wait_for(lambda requests: len(requests) == 2)

    def test_d3_a_replica_that_says_nothing_is_left(self):
        service = self.serve(is_silent=True)
        with mock.patch.object(watcher, "FIRST_RESPONSE_TIMEOUT", 0.05):
            handle = self.resolver(service.address).endpoints("default/web")
            self.until(handle, lambda held: held.problem is not None and "no response within" in held.problem.message)
            service.wait_for(lambda requests: len(requests) == 2)

    def test_d3_an_error_of_the_client_ends_no_thread(self):
        service = self.serve(whole(10, endpoint("a")))
        with mock.patch.object(Held, "after", side_effect=[KeyError("a bug"), mock.DEFAULT], autospec=True) as after:
            after.return_value = Held((), 10, service.address, followed=True)
            with self.assertLogs("endpoint_resolver", logging.ERROR):
                self.assertEqual(self.resolver(service.address).endpoints("default/web").wait(DEADLINE).version, 10)

    def test_d3_a_damaged_file_is_replaced_at_the_next_answer(self):
        self.file.write_bytes(b"sha256:0\n{}")
        service = self.serve(whole(10, endpoint("a")))
        resolver = self.resolver(service.address)
        with self.assertLogs("endpoint_resolver", logging.WARNING):
            handle = resolver.endpoints("default/web")
        handle.wait(DEADLINE)
        resolver.close()
        self.assertEqual([each.pod for each in file_format.decode(WEB, self.file.read_bytes()).endpoints], ["a"])

    def test_d3_a_directory_that_can_not_be_written_stops_nothing(self):
        self.directory = self.directory / "file"
        self.directory.touch()
        service = self.serve(whole(10, endpoint("a")))
        with self.assertLogs("endpoint_resolver", logging.WARNING):
            resolver = self.resolver(service.address)
            self.assertEqual(pods(resolver.endpoints("default/web").wait(DEADLINE)), ["a"])
            resolver.close()


class Use(ResolverTest):
    def test_d3_without_any_answer_there_is_an_error_and_no_empty_set(self):
        service = self.serve()
        handle = self.resolver(service.address).endpoints("default/web")
        self.until_problem(handle, Reason.NOT_FOUND)
        self.assertIsNone(handle.current())
        for ask in (lambda: handle.wait(0), handle.addresses):
            with self.assertRaisesRegex(NoAnswer, "default/web: no answer .*: NOT_FOUND: there is no such set") as raised:
                ask()
            self.assertIs(raised.exception.problem.reason, Reason.NOT_FOUND)
        self.assertIsNone(handle.wait_for_change(0, timeout=0))

    def test_d3_close_ends_waits_and_threads_and_keeps_answers(self):
        service = self.serve(whole(10, endpoint("a")), problem(1, name="none"))
        with self.resolver(service.address) as resolver:
            web, none = resolver.endpoints("default/web"), resolver.endpoints("default/none")
            web.wait(DEADLINE)
            threads = [*resolver._watchers, resolver._saver]
        self.assertEqual([thread.is_alive() for thread in threads], [False, False])
        self.assertEqual(pods(web.current()), ["a"])
        self.assertIsNone(web.wait_for_change(10))
        with self.assertRaisesRegex(NoAnswer, "the resolver is closed"):
            none.wait()
        with self.assertRaises(RuntimeError):
            resolver.endpoints("default/other")
        resolver.close()

    def test_d3_close_does_not_wait_for_a_server(self):
        resolver = self.resolver(unused_address())
        handle = resolver.endpoints("default/web")
        with mock.patch.object(backoff, "delay", return_value=3600.0):
            self.until_problem(handle, Reason.UNAVAILABLE)
        resolver.close()
        self.assertFalse(resolver._watchers[0].is_alive())

    def test_d3_arguments_are_checked(self):
        for servers in ([], "127.0.0.1:9490"):
            with self.subTest(servers), self.assertRaises(ValueError):
                Resolver(servers)
        with self.assertRaises(ValueError):
            self.resolver(unused_address()).endpoints("../web")


class Backoff(unittest.TestCase):
    def test_d3_delays_double_with_each_round_over_the_servers_up_to_the_maximum(self):
        rng = mock.Mock(spec=random.Random)
        rng.uniform.side_effect = lambda low, high: high
        for failures, servers, expected in [
            (1, 1, 0.1),
            (2, 1, 0.2),
            (3, 1, 0.4),
            (9, 1, 25.6),
            (10, 1, 30.0),
            (10**6, 1, 30.0),
        ] + [
            (1, 3, 0.1 / 3),
            (3, 3, 0.1 / 3),
            (4, 3, 0.2 / 3),
            (10**6, 3, 10.0),
        ]:
            with self.subTest(failures=failures, servers=servers):
                self.assertAlmostEqual(backoff.delay(failures, servers, rng), expected)

    def test_d3_delays_are_random(self):
        rng = random.Random(5)
        delays = [backoff.delay(1, 1, rng) for _ in range(100)]
        self.assertTrue(all(0.05 <= delay <= 0.1 for delay in delays))
        self.assertGreater(len(set(delays)), 90)
