"""What a client has of one set, and what the next response makes of it. Pure: the time is an argument, in monotonic seconds.

`Held` -- response --> `Held` -- `answer` --> `Answer`. An error never removes endpoints (D3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import messages
from .answer import Answer, Endpoint, Port, Problem, Reason, StaleMember
from .wire import DecodeError

_REASONS = {
    messages.REASON_NOT_FOUND: Reason.NOT_FOUND,
    messages.REASON_INVALID: Reason.INVALID,
    messages.REASON_WAITING: Reason.WAITING,
    messages.REASON_FORBIDDEN: Reason.FORBIDDEN,
}


class Gap(Exception):
    """Changes are from another version than the client has."""


@dataclass(frozen=True)
class Held:
    """What a client has of one set."""

    # By cluster and pod. None before the first answer.
    endpoints: tuple[Endpoint, ...] | None = None
    version: int = 0
    # The server that gave the version; None for an answer from the disk.
    server: str | None = None
    stale_members: tuple[StaleMember, ...] = ()
    # When `stale_members` were received.
    stale_at: float = 0.0
    # When the service last confirmed the endpoints, unless it does so all the time: then they are `followed`.
    confirmed: float = 0.0
    followed: bool = False
    problem: Problem | None = None

    def known_version(self, server: str) -> int:
        """The version to go on from at `server`, or 0: another replica has other versions."""
        return self.version if self.server == server else 0

    def confirmed_at(self, now: float) -> float:
        """When the service last confirmed the endpoints."""
        return now if self.followed else min(self.confirmed, now)

    def answer(self, name: str, now: float) -> Answer | None:
        """The answer about the set `name`, if there is one."""
        if self.endpoints is None:
            return None
        aged = tuple(_aged(member, now - self.stale_at) for member in self.stale_members)
        return Answer(name, self.version, self.endpoints, now - self.confirmed_at(now), aged, self.problem)

    def after(self, response: messages.WatchResponse, server: str, now: float) -> Held:
        """With a response of `server`.

        Raises `Gap` if it can't follow what is held, and `DecodeError` if it is none of this service.
        """
        if response.problem is not None:
            reason = _REASONS.get(response.problem.reason, Reason.UNKNOWN)
            return self.interrupted(Problem(reason, response.problem.message), now)
        if response.endpoints is not None:
            version, endpoints = response.endpoints.version, _whole(response.endpoints)
        elif response.changes is not None:
            version, endpoints = response.changes.version, self._changed(response.changes, server)
        else:
            # An event of a later version of the service.
            return self
        if version == 0:
            raise DecodeError("endpoints without a version")
        stale = tuple(StaleMember(member.cluster, member.seconds) for member in response.stale_members)
        return Held(endpoints, version, server, stale, now, now, followed=True)

    def interrupted(self, problem: Problem | None, now: float) -> Held:
        """No longer followed: because of `problem`, or, if None, for a moment."""
        return replace(self, confirmed=self.confirmed_at(now), followed=False, problem=problem or self.problem)

    def without_server(self) -> Held:
        """Will be asked for as a whole."""
        return replace(self, server=None)

    def _changed(self, changes: messages.Changes, server: str) -> tuple[Endpoint, ...]:
        if self.endpoints is None or self.server != server or changes.from_version != self.version:
            raise Gap(f"changes are from version {changes.from_version}, not from {self.known_version(server)}")
        if not changes.updated and not changes.removed:
            return self.endpoints
        endpoints = {endpoint.key: endpoint for endpoint in self.endpoints}
        for key in changes.removed:
            endpoints.pop((key.cluster, key.pod), None)
        endpoints.update((endpoint.key, endpoint) for endpoint in map(_endpoint, changes.updated))
        return tuple(endpoints[key] for key in sorted(endpoints))


def _whole(message: messages.Endpoints) -> tuple[Endpoint, ...]:
    endpoints = {endpoint.key: endpoint for endpoint in map(_endpoint, message.endpoints)}
    return tuple(endpoints[key] for key in sorted(endpoints))


def _endpoint(message: messages.Endpoint) -> Endpoint:
    key = message.key
    if key is None or not key.cluster or not key.pod:
        raise DecodeError("an endpoint needs a cluster and a pod")
    if not all(1 <= port.number <= 65535 for port in message.ports):
        raise DecodeError(f"{key.cluster}/{key.pod}: the number of a port is not from 1 to 65535")
    return Endpoint(
        cluster=key.cluster,
        pod=key.pod,
        addresses=message.addresses,
        ports=tuple(Port(port.name, port.number) for port in message.ports),
        ready=message.ready,
        serving=message.serving,
        terminating=message.terminating,
        zone=message.zone,
        node=message.node,
        labels=message.labels,
    )


def _aged(member: StaleMember, seconds: float) -> StaleMember:
    """The service does not say again that a member is stale: only when it began."""
    return member if member.seconds is None else replace(member, seconds=member.seconds + seconds)
