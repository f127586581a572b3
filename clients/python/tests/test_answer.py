"""Addresses of an answer, and names of sets."""

import dataclasses
import unittest

from endpoint_resolver import Answer, Endpoint, Port
from endpoint_resolver.set_name import SetName

PORTS = (Port("http", 8080), Port("metrics", 9000))


def pod(name, *addresses, **state):
    return Endpoint("eu", name, addresses, PORTS, **state)


def answer(*endpoints):
    return Answer("default/web", 1, endpoints, 0.0)


class Addresses(unittest.TestCase):
    def test_d1_ready_endpoints_come_before_serving_ones_before_all(self):
        ready = pod("a", "10.0.0.1", ready=True, serving=True)
        serving = pod("b", "10.0.0.2", serving=True, terminating=True)
        other = pod("c", "10.0.0.3")
        for endpoints, expected in [
            ((ready, serving, other), ("10.0.0.1:8080",)),
            ((serving, other), ("10.0.0.2:8080",)),
            ((other,), ("10.0.0.3:8080",)),
            ((pod("d", ready=True), other), ("10.0.0.3:8080",)),
            ((), ()),
        ]:
            with self.subTest(expected):
                self.assertEqual(answer(*endpoints).addresses("http"), expected)

    def test_d1_ports_have_names_and_addresses_families(self):
        both = answer(pod("a", "10.0.0.1", "fd00::1", ready=True), pod("b", "fd00::2", ready=True))
        for arguments, expected in [
            ((), ("10.0.0.1:8080", "[fd00::2]:8080")),
            (("metrics",), ("10.0.0.1:9000", "[fd00::2]:9000")),
            (("http", 4), ("10.0.0.1:8080",)),
            (("http", 6), ("[fd00::1]:8080", "[fd00::2]:8080")),
            (("unknown",), ()),
        ]:
            with self.subTest(arguments):
                self.assertEqual(both.addresses(*arguments), expected)
        with self.assertRaises(ValueError):
            both.addresses("http", 5)

    def test_d1_answers_do_not_change(self):
        with self.assertRaises(dataclasses.FrozenInstanceError):
            answer().version = 2
        with self.assertRaises(TypeError):
            pod("a").labels["k"] = "v"
        self.assertEqual(hash(pod("a")), hash(pod("a")))


class Names(unittest.TestCase):
    def test_d1_names_are_those_of_kubernetes(self):
        self.assertEqual(SetName.parse("default/web.v2"), SetName("default", "web.v2"))
        for text in ["web", "/web", "default/", "a/b/c", "../web", "default/..", "a.b/c", "Default/web", "a/" + "b" * 64, "a/b\n"]:
            with self.subTest(text), self.assertRaises(ValueError):
                SetName.parse(text)
