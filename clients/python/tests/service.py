"""A small replica of the service on loopback: bytes in, bytes out."""

from __future__ import annotations

import queue
import threading
from concurrent import futures
from typing import Callable, Iterator

import grpc

from endpoint_resolver import codec, messages

NOT_FOUND = messages.Problem(messages.REASON_NOT_FOUND, "there is no such set")


class Service:
    """Answers Watch with what `publish` was told, until `stop`."""

    def __init__(self, *responses: messages.WatchResponse, port: int = 0, is_silent: bool = False, credentials=None) -> None:
        # The requests until now: the known version by the name of the set.
        self.requests: list[dict[str, int]] = []
        self._states: dict[messages.SetId, messages.WatchResponse | bytes] = {each.set: each for each in responses}
        self._calls: list[queue.Queue] = []
        self._is_silent = is_silent
        self._changed = threading.Condition()
        handler = grpc.unary_stream_rpc_method_handler(self._watch)
        _, service, method = messages.WATCH.split("/")
        self._server = grpc.server(
            futures.ThreadPoolExecutor(8),
            handlers=[grpc.method_handlers_generic_handler(service, {method: handler})],
            options=[("grpc.http2.min_ping_interval_without_data_ms", 1000)],
        )
        address = f"127.0.0.1:{port}"
        secure = credentials is not None
        self.port = self._server.add_secure_port(address, credentials) if secure else self._server.add_insecure_port(address)
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()

    def publish(self, state: messages.WatchResponse, sent: messages.WatchResponse | None = None) -> None:
        """What is known of a set now; calls that run are sent `sent`, by default the whole."""
        self._send(state.set, state, sent or state)

    def publish_bytes(self, of: messages.SetId, data: bytes) -> None:
        """What every call is sent about a set from now on."""
        self._send(of, data, data)

    def _send(self, of: messages.SetId, state: messages.WatchResponse | bytes, sent: messages.WatchResponse | bytes) -> None:
        with self._changed:
            self._states[of] = state
            for call in self._calls:
                call.put(sent)

    def wait_for(self, condition: Callable[[list[dict[str, int]]], bool]) -> None:
        """Waits until the requests are as `condition` says."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self.requests), 20):
                raise AssertionError(f"the requests are {self.requests}")

    def stop(self) -> None:
        """Ends all calls, as a process that is killed does."""
        with self._changed:
            for call in self._calls:
                call.put(None)
        self._server.stop(None).wait(10)

    def _watch(self, data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        call: queue.Queue = queue.Queue()
        context.add_callback(lambda: call.put(None))
        request = codec.decode(messages.WatchRequest, data)
        with self._changed:
            self.requests.append({watched.set.name: watched.known_version for watched in request.sets})
            for watched in () if self._is_silent else request.sets:
                call.put(self._first(watched))
            self._calls.append(call)
            self._changed.notify_all()
        for response in iter(call.get, None):
            yield response if isinstance(response, bytes) else codec.encode(response)

    def _first(self, watched: messages.WatchedSet) -> messages.WatchResponse | bytes:
        state = self._states.get(watched.set) or messages.WatchResponse(watched.set, problem=NOT_FOUND)
        known = watched.known_version
        if isinstance(state, messages.WatchResponse) and state.endpoints is not None and state.endpoints.version == known:
            return messages.WatchResponse(watched.set, changes=messages.Changes(known, known))
        return state
