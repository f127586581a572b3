"""The messages of `proto/fedrs/discovery/v1alpha1/discovery.proto`, field by field. What they mean is said there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .codec import Kind, labels, message, messages, scalar, scalars

WATCH = "/fedrs.discovery.v1alpha1.Discovery/Watch"

REASON_NOT_FOUND = 1
REASON_INVALID = 2
REASON_WAITING = 3
REASON_FORBIDDEN = 4


@dataclass(frozen=True)
class SetId:
    namespace: str = scalar(1, Kind.STRING)
    name: str = scalar(2, Kind.STRING)


@dataclass(frozen=True)
class EndpointKey:
    cluster: str = scalar(1, Kind.STRING)
    pod: str = scalar(2, Kind.STRING)


@dataclass(frozen=True)
class Port:
    name: str = scalar(1, Kind.STRING)
    number: int = scalar(2, Kind.UINT32)


@dataclass(frozen=True)
class Endpoint:
    key: EndpointKey | None = message(1, EndpointKey)
    addresses: tuple[str, ...] = scalars(2, Kind.STRING)
    ports: tuple[Port, ...] = messages(3, Port)
    ready: bool = scalar(4, Kind.BOOL)
    serving: bool = scalar(5, Kind.BOOL)
    terminating: bool = scalar(6, Kind.BOOL)
    zone: str = scalar(7, Kind.STRING)
    node: str = scalar(8, Kind.STRING)
    labels: Mapping[str, str] = labels(9)


@dataclass(frozen=True)
class StaleMember:
    cluster: str = scalar(1, Kind.STRING)
    seconds: int | None = scalar(2, Kind.UINT64, optional=True)


@dataclass(frozen=True)
class ResolveRequest:
    set: SetId | None = message(1, SetId)
    known_version: int = scalar(2, Kind.UINT64)


@dataclass(frozen=True)
class ResolveResponse:
    version: int = scalar(1, Kind.UINT64)
    unchanged: bool = scalar(2, Kind.BOOL)
    endpoints: tuple[Endpoint, ...] = messages(3, Endpoint)
    stale_members: tuple[StaleMember, ...] = messages(4, StaleMember)


@dataclass(frozen=True)
class WatchedSet:
    set: SetId | None = message(1, SetId)
    known_version: int = scalar(2, Kind.UINT64)


@dataclass(frozen=True)
class WatchRequest:
    sets: tuple[WatchedSet, ...] = messages(1, WatchedSet)


@dataclass(frozen=True)
class Endpoints:
    version: int = scalar(1, Kind.UINT64)
    endpoints: tuple[Endpoint, ...] = messages(2, Endpoint)


@dataclass(frozen=True)
class Changes:
    from_version: int = scalar(1, Kind.UINT64)
    version: int = scalar(2, Kind.UINT64)
    updated: tuple[Endpoint, ...] = messages(3, Endpoint)
    removed: tuple[EndpointKey, ...] = messages(4, EndpointKey)


@dataclass(frozen=True)
class Problem:
    # An enum: a number of a later version of the service is possible.
    reason: int = scalar(1, Kind.UINT32)
    message: str = scalar(2, Kind.STRING)


@dataclass(frozen=True)
class WatchResponse:
    """At most one of `endpoints`, `changes` and `problem`."""

    set: SetId | None = message(1, SetId)
    endpoints: Endpoints | None = message(2, Endpoints, oneof=True)
    changes: Changes | None = message(3, Changes, oneof=True)
    problem: Problem | None = message(4, Problem, oneof=True)
    stale_members: tuple[StaleMember, ...] = messages(5, StaleMember)
