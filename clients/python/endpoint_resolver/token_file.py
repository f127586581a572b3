"""Who the client is: a token in a file, as Kubernetes projects it into a pod."""

from __future__ import annotations

from pathlib import Path

import grpc


class TokenFile(grpc.AuthMetadataPlugin):
    """Sends the token of a file with each call, and reads it anew each time: it is rotated. Only over TLS:

        grpc.composite_channel_credentials(grpc.ssl_channel_credentials(ca), grpc.metadata_call_credentials(TokenFile(path)))

    A file that can't be read fails the call with the name of the file, and the next server is tried.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def __call__(self, context: grpc.AuthMetadataContext, callback: grpc.AuthMetadataPluginCallback) -> None:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            # Without the cause's own text, which may quote the token.
            callback((), RuntimeError(f"token file {self._path}: {type(error).__name__}"))
            return
        callback((("authorization", f"Bearer {token}"),), None)
