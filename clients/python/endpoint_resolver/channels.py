"""Channels to the servers, with what a call that lasts for days needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from .codec import MAX_MESSAGE

ChannelOptions = Sequence[tuple[str, Any]]

_OPTIONS: ChannelOptions = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    # A connection that is dead without a sign is noticed within 30 s.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Otherwise channels to one server share its connection, and how long it is not tried again: that is for `backoff` to say.
    ("grpc.use_local_subchannel_pool", 1),
)


def open_channel(server: str, credentials: grpc.ChannelCredentials | None, options: ChannelOptions) -> grpc.Channel:
    """A channel to `server`: plain without `credentials`. `options` come before those of this module."""
    given = {name for name, _ in options}
    every = [*options, *(option for option in _OPTIONS if option[0] not in given)]
    if credentials is None:
        return grpc.insecure_channel(server, every)
    return grpc.secure_channel(server, credentials, every)
