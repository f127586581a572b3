"""The thread that follows sets: one call at a time, at one server after another.

    wait for sets -> Watch at a server -> responses to the handles -> the call ends -> back off -> Watch at the next server

What an end of the call means for the endpoints is decided in `held`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable

import grpc

from . import backoff, codec, messages
from .answer import Problem, Reason
from .handle import SetHandle
from .held import Gap
from .set_name import SetName
from .wire import DecodeError

log = logging.getLogger("endpoint_resolver")

# As many sets as the service allows in one call.
MAX_SETS = 1_000
# The first response comes at once from a server that works: of a set that it does not know yet, it says so. Seconds.
FIRST_RESPONSE_TIMEOUT = 10.0
# Sets that a program asks for one after another share a call. Seconds.
SETTLE_TIME = 0.02
# A call that lasted as long, in seconds, was no failure. Longer than a server may be silent.
STABLE_AFTER = 20.0


class _Failed(Exception):
    """A call ended. The text says why."""


class _Waits(Exception):
    """The server has not listed everything yet, and another one may have."""


class Watcher(threading.Thread):
    """Follows up to `MAX_SETS` sets, and tells `on_answer` about each new version.

    Owns its channel, its call and the order of the servers.
    """

    def __init__(
        self,
        servers: Sequence[str],
        open_channel: Callable[[str], grpc.Channel],
        on_answer: Callable[[SetHandle], None],
        rng: random.Random,
    ) -> None:
        super().__init__(name="endpoint-resolver-watcher", daemon=True)
        self._open_channel = open_channel
        self._on_answer = on_answer
        self._rng = rng
        # A random order: clients spread over the servers.
        self._servers = rng.sample(list(servers), len(servers))
        self._failures = 0
        # Servers that said of a set that they wait.
        self._waiting: set[str] = set()
        self._channel: tuple[str, grpc.Channel] | None = None
        # The state below is shared with `add` and `close`.
        self._wake = threading.Condition()
        self._handles: list[SetHandle] = []
        self._call: grpc.Call | None = None
        self._has_new_sets = False
        self._closed = False

    def add(self, handle: SetHandle) -> bool:
        """Follows another set; False if there is no room for it."""
        with self._wake:
            if len(self._handles) >= MAX_SETS:
                return False
            self._handles.append(handle)
            self._has_new_sets = True
            self._interrupt()
            return True

    def close(self) -> None:
        """Ends the thread. `join` waits for that."""
        with self._wake:
            self._closed = True
            self._interrupt()

    def run(self) -> None:
        """Follows the sets until `close`."""
        try:
            while self._wait_for_sets():
                self._attempt()
        finally:
            self._close_channel()

    def _interrupt(self) -> None:
        self._wake.notify_all()
        if self._call is not None:
            self._call.cancel()

    def _wait_for_sets(self) -> bool:
        """Waits until there are sets to follow; False after `close`."""
        with self._wake:
            self._wake.wait_for(lambda: self._handles or self._closed)
            if self._has_new_sets:
                self._wake.wait_for(lambda: self._closed, SETTLE_TIME)
            return not self._closed

    def _attempt(self) -> None:
        """Follows the sets at the first server until the call ends; then prepares the next attempt."""
        server, started = self._servers[0], time.monotonic()
        with self._wake:
            self._has_new_sets = False
            handles = {handle.name: handle for handle in self._handles}
        problem, has_failed = None, True
        try:
            self._follow(server, handles)
            has_failed = False
        except _Waits:
            # The handles of which it said so have that problem.
            log.debug("%s waits for members", server)
        except _Failed as error:
            problem = Problem(Reason.UNAVAILABLE, f"{server}: {error}")
            log.debug("%s", problem)
        except Exception as error:  # The thread must not end: nobody would notice, and answers would grow old.
            problem = Problem(Reason.UNAVAILABLE, f"{server}: {error!r}")
            log.exception("following sets at %s failed", server)
        now = time.monotonic()
        for handle in handles.values():
            handle.replace(handle.held.interrupted(problem, now))
        if has_failed:
            self._failures = 1 if now - started >= STABLE_AFTER else self._failures + 1
            self._use_next_server()

    def _use_next_server(self) -> None:
        self._close_channel()
        self._servers.append(self._servers.pop(0))
        with self._wake:
            self._wake.wait_for(lambda: self._closed, backoff.delay(self._failures, len(self._servers), self._rng))

    def _follow(self, server: str, handles: dict[SetName, SetHandle]) -> None:
        """One call: returns if it was interrupted, otherwise raises `_Failed` or `_Waits` when it ends."""
        call = self._begin(server, _request(server, handles.values()))
        if call is None:
            return
        silence = _Silence(call)
        try:
            for response in call:
                silence.ends()
                self._take(codec.decode(messages.WatchResponse, response), server, handles)
            raise _Failed("the service ended the call")
        except grpc.RpcError as error:
            if not self._is_interrupted():
                raise _Failed(silence.text or _text(error)) from None
        except DecodeError as error:
            raise _Failed(f"malformed response: {error}") from None
        finally:
            silence.ends()
            call.cancel()
            with self._wake:
                self._call = None

    def _begin(self, server: str, request: bytes) -> Any:
        """The call, which `_interrupt` cancels from now on; None if it already would have."""
        if self._channel is None:
            self._channel = server, self._open_channel(server)
        _, channel = self._channel
        call = channel.unary_stream(messages.WATCH)(request)
        with self._wake:
            if self._closed or self._has_new_sets:
                call.cancel()
                return None
            self._call = call
        return call

    def _take(self, response: messages.WatchResponse, server: str, handles: dict[SetName, SetHandle]) -> None:
        """Gives a response to its handle."""
        name = SetName(response.set.namespace, response.set.name) if response.set else None
        handle = handles.get(name) if name else None
        if handle is None:
            raise _Failed("a response about a set that was not asked for")
        before = handle.held
        try:
            held = before.after(response, server, time.monotonic())
        except Gap as gap:
            handle.replace(before.without_server())
            raise _Failed(f"{name}: {gap}") from None
        handle.replace(held)
        if held.followed and (held.version, held.server) != (before.version, before.server):
            self._on_answer(handle)
        self._note_waiting(before.problem, held.problem, server, handles)

    def _note_waiting(self, before: Problem | None, now: Problem | None, server: str, handles: dict[SetName, SetHandle]) -> None:
        """Leaves a server that waits for members, unless all servers do: then this one is as good as the others."""
        if _is_waiting(now):
            self._waiting.add(server)
            if len(self._waiting) < len(self._servers):
                raise _Waits
        elif _is_waiting(before) and not any(_is_waiting(handle.problem) for handle in handles.values()):
            self._waiting.clear()

    def _is_interrupted(self) -> bool:
        with self._wake:
            return self._closed or self._has_new_sets

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._channel[1].close()
            self._channel = None


class _Silence:
    """Cancels a call that has no response within `FIRST_RESPONSE_TIMEOUT`, and says so in `text`."""

    def __init__(self, call: grpc.Call) -> None:
        self.text = ""
        self._call = call
        self._timer = threading.Timer(FIRST_RESPONSE_TIMEOUT, self._cancel)
        self._timer.daemon = True
        self._timer.start()

    def ends(self) -> None:
        """There is a response, or the call has ended."""
        self._timer.cancel()

    def _cancel(self) -> None:
        self.text = f"no response within {FIRST_RESPONSE_TIMEOUT:.0f} s"
        self._call.cancel()


def _request(server: str, handles: Iterable[SetHandle]) -> bytes:
    sets = (messages.WatchedSet(messages.SetId(*handle.name), handle.held.known_version(server)) for handle in handles)
    return codec.encode(messages.WatchRequest(tuple(sets)))


def _is_waiting(problem: Problem | None) -> bool:
    return problem is not None and problem.reason is Reason.WAITING


def _text(error: grpc.RpcError) -> str:
    """What a call of grpcio says about its end."""
    return f"{error.code().name}: {error.details()}"
