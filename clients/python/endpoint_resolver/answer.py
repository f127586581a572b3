"""What applications get: immutable answers. No IO."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Callable


class Reason(enum.Enum):
    """A class of problems."""

    # There is no such set.
    NOT_FOUND = "NOT_FOUND"
    # The set is invalid, or its source does not exist.
    INVALID = "INVALID"
    # The service has not listed everything yet.
    WAITING = "WAITING"
    # The user of the client may not get the set.
    FORBIDDEN = "FORBIDDEN"
    # No server answers, or one did not answer as the protocol says.
    UNAVAILABLE = "UNAVAILABLE"
    # One that this version of the client does not know.
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Problem:
    """Why the last attempt had no answer."""

    reason: Reason
    # A sentence for people.
    message: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"


class NoAnswer(Exception):
    """Nothing is known of a set: neither the service nor the disk had an answer. `problem` says why, if that is known."""

    def __init__(self, text: str, problem: Problem | None = None) -> None:
        super().__init__(f"{text}: {problem}" if problem else text)
        self.problem = problem


@dataclass(frozen=True)
class Port:
    """A port of an endpoint."""

    # The name that the set gives it.
    name: str
    # From 1 to 65535.
    number: int


@dataclass(frozen=True)
class Endpoint:
    """A pod of a member cluster."""

    cluster: str
    pod: str
    # In text form, the IPv4 one first. Empty while the pod has none.
    addresses: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    # Whether new requests may be sent to it: it serves, and is not being removed.
    ready: bool = False
    # Whether it takes requests, also while it is being removed.
    serving: bool = False
    terminating: bool = False
    # Of its node, or empty.
    zone: str = ""
    node: str = ""
    # Those that the set asks for.
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """Which one: the pods of several clusters may have one name."""
        return self.cluster, self.pod


@dataclass(frozen=True)
class StaleMember:
    """A member cluster of which changes may be missing."""

    cluster: str
    # For how long. None if its pods are not known at all.
    seconds: float | None


@dataclass(frozen=True)
class Answer:
    """The last good answer about a set, at the time of the call that returned it."""

    # NAMESPACE/NAME
    set: str
    # Of the replica of the service that gave the answer: other replicas have other versions.
    version: int
    # By cluster and pod.
    endpoints: tuple[Endpoint, ...]
    # Seconds since the service last confirmed it. 0.0 while a call follows the set; a connection that is dead without a sign counts
    # as alive for up to 30 s.
    age: float
    stale_members: tuple[StaleMember, ...] = ()
    # Of the last attempt, or None.
    problem: Problem | None = None

    def addresses(self, port_name: str | None = None, family: int | None = None) -> tuple[str, ...]:
        """`ADDRESS:PORT` of each ready endpoint, IPv6 in brackets, for HTTP clients and for `ipv4:` and `ipv6:` targets of gRPC.

        Of all that serve if none is ready, and of all if none serves: rather a stale success than an error. `port_name` is by
        default the first port. `family` is 4 or 6; by default, each endpoint has its first address. Endpoints without such a port
        or address are left out.
        """
        if family not in (None, 4, 6):
            raise ValueError(f"family: {family} is not 4 or 6")
        usable: tuple[Callable[[Endpoint], bool], ...] = (lambda e: e.ready, lambda e: e.serving, lambda e: True)
        for is_usable in usable:
            found = (_address(endpoint, port_name, family) for endpoint in self.endpoints if is_usable(endpoint))
            addresses = tuple(address for address in found if address is not None)
            if addresses:
                return addresses
        return ()


def _address(endpoint: Endpoint, port_name: str | None, family: int | None) -> str | None:
    port = next((port.number for port in endpoint.ports if port_name in (None, port.name)), None)
    address = next(_of_family(endpoint.addresses, family), None)
    if port is None or address is None:
        return None
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _of_family(addresses: tuple[str, ...], family: int | None) -> Iterator[str]:
    return (address for address in addresses if family is None or (":" in address) == (family == 6))
