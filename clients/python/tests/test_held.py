"""What a client has of a set: what each response makes of it."""

import random
import unittest

from endpoint_resolver import Reason, StaleMember, messages
from endpoint_resolver.held import Gap, Held
from endpoint_resolver.wire import DecodeError

from .samples import changes, endpoint, problem, whole

SEED = 3
A, B = "a:9490", "b:9490"


def pods(held):
    return [endpoint.pod for endpoint in held.endpoints]


class Responses(unittest.TestCase):
    def setUp(self):
        self.held = Held().after(whole(10, endpoint("b"), endpoint("a")), A, now=100.0)

    def test_d2_a_whole_set_replaces_the_endpoints(self):
        self.assertEqual((self.held.version, pods(self.held)), (10, ["a", "b"]))
        self.assertEqual(pods(self.held.after(whole(11, endpoint("c")), A, now=101.0)), ["c"])

    def test_d2_an_empty_set_is_empty(self):
        held = self.held.after(whole(11), A, now=101.0)
        self.assertEqual(held.endpoints, ())
        self.assertEqual(held.answer("default/web", 101.0).endpoints, ())

    def test_d2_changes_follow_on_the_version_that_is_held(self):
        response = changes(10, 12, (endpoint("c"),), (messages.EndpointKey("eu", "a"),))
        held = self.held.after(response, A, now=101.0)
        self.assertEqual((held.version, pods(held)), (12, ["b", "c"]))

    def test_d2_changes_that_do_not_follow_are_a_gap(self):
        for what, held, server, version in [
            ("another version", self.held, A, 9),
            ("the same version of another replica", self.held, B, 10),
            ("no answer", Held(), A, 0),
            ("an answer from the disk", Held(self.held.endpoints, 10), A, 10),
            ("asked for as a whole", self.held.without_server(), A, 10),
        ]:
            with self.subTest(what), self.assertRaises(Gap):
                held.after(changes(version, 12), server, now=101.0)

    def test_d2_a_version_is_known_only_at_its_replica(self):
        self.assertEqual(self.held.known_version(A), 10)
        self.assertEqual(self.held.known_version(B), 0)
        self.assertEqual(Held(self.held.endpoints, 10).known_version(A), 0)

    def test_d2_random_changes_add_up_to_the_whole(self):
        rng = random.Random(SEED)
        held, model, version = Held().after(whole(1), A, now=0.0), {}, 1
        for _ in range(2_000):
            before = dict(model)
            for _ in range(rng.randrange(4)):
                cluster, pod = rng.choice(["eu", "us"]), f"p{rng.randrange(12)}"
                model.pop((cluster, pod), None)
                if rng.random() < 0.6:
                    model[cluster, pod] = endpoint(pod, rng.random() < 0.5, f"10.0.0.{rng.randrange(3)}", cluster)
            updated = tuple(each for key, each in model.items() if before.get(key) != each)
            removed = tuple(messages.EndpointKey(*key) for key in before if key not in model)
            held = held.after(changes(version, version + 1, updated, removed), A, now=0.0)
            version += 1
            expected = Held().after(whole(version, *model.values()), A, now=0.0)
            self.assertEqual(held, expected)

    def test_d3_a_problem_keeps_the_endpoints(self):
        for number, reason in [
            (1, Reason.NOT_FOUND),
            (2, Reason.INVALID),
            (3, Reason.WAITING),
            (4, Reason.FORBIDDEN),
            (0, Reason.UNKNOWN),
            (99, Reason.UNKNOWN),
        ]:
            with self.subTest(reason):
                held = self.held.after(problem(number), A, now=105.0)
                self.assertEqual((held.endpoints, held.version), (self.held.endpoints, 10))
                self.assertEqual(held.problem.reason, reason)
                again = held.after(changes(10, 10), A, now=106.0)
                self.assertEqual((pods(again), again.problem), (["a", "b"], None))

    def test_d3_a_problem_is_no_answer(self):
        self.assertIsNone(Held().after(problem(1), A, now=1.0).answer("default/web", 1.0))

    def test_d3_endpoints_without_a_version_are_no_empty_set(self):
        with self.assertRaises(DecodeError):
            self.held.after(whole(0), A, now=101.0)

    def test_d3_malformed_endpoints_are_an_error(self):
        for bad in [
            messages.Endpoint(),
            messages.Endpoint(messages.EndpointKey("eu", "")),
            messages.Endpoint(messages.EndpointKey("eu", "a"), ports=(messages.Port("http", 0),)),
            messages.Endpoint(messages.EndpointKey("eu", "a"), ports=(messages.Port("http", 65536),)),
        ]:
            with self.subTest(bad), self.assertRaises(DecodeError):
                self.held.after(whole(11, bad), A, now=101.0)

    def test_d2_an_event_of_a_later_version_changes_nothing(self):
        response = messages.WatchResponse(set=messages.SetId("default", "web"))
        self.assertIs(self.held.after(response, A, now=101.0), self.held)

    def test_d3_the_age_grows_while_nothing_confirms_it(self):
        def age(held, now):
            return held.answer("default/web", now).age

        self.assertEqual(age(self.held, 400.0), 0.0)
        lost = self.held.interrupted(None, 110.0)
        self.assertEqual((age(lost, 110.0), age(lost, 400.0)), (0.0, 290.0))
        # Another failure confirms nothing.
        self.assertEqual(age(lost.interrupted(None, 200.0), 400.0), 290.0)
        self.assertEqual(age(lost.after(problem(1), A, 200.0), 400.0), 290.0)
        self.assertEqual(age(lost.after(changes(10, 10), A, 200.0), 400.0), 0.0)

    def test_d2_the_age_of_a_stale_member_grows(self):
        stale = (messages.StaleMember("eu", 30), messages.StaleMember("us"))
        held = self.held.after(whole(11, stale=stale), A, now=200.0)
        members = held.answer("default/web", 205.0).stale_members
        self.assertEqual(members, (StaleMember("eu", 35.0), StaleMember("us", None)))
