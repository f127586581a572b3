"""Endpoints and responses for tests."""

from __future__ import annotations

from endpoint_resolver import messages


def endpoint(pod: str, ready: bool = True, address: str = "10.0.0.1", cluster: str = "eu") -> messages.Endpoint:
    """A pod, as the service sends it."""
    return messages.Endpoint(
        key=messages.EndpointKey(cluster, pod),
        addresses=(address,),
        ports=(messages.Port("http", 8080),),
        ready=ready,
        serving=ready,
        zone="eu-1",
        node="n1",
        labels={"version": "2"},
    )


def whole(version: int, *endpoints: messages.Endpoint, stale: tuple = (), name: str = "web") -> messages.WatchResponse:
    """All endpoints of the set `default/NAME`."""
    return messages.WatchResponse(
        set=messages.SetId("default", name),
        endpoints=messages.Endpoints(version, endpoints),
        stale_members=stale,
    )


def changes(from_version: int, version: int, updated: tuple = (), removed: tuple = (), name: str = "web") -> messages.WatchResponse:
    """What is different; `removed` has keys."""
    return messages.WatchResponse(
        set=messages.SetId("default", name),
        changes=messages.Changes(from_version, version, updated, removed),
    )


def problem(reason: int, text: str = "a sentence", name: str = "web") -> messages.WatchResponse:
    """Why the endpoints of the set are not known."""
    return messages.WatchResponse(set=messages.SetId("default", name), problem=messages.Problem(reason, text))
