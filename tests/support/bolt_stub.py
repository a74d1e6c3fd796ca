"""A server with just enough Bolt to refuse: a wrong version, a password, a database, a write."""

import socket
import struct
import threading
from collections.abc import Mapping
from typing import BinaryIO

_HELLO, _LOGON, _GOODBYE, _RESET, _RUN, _BEGIN = 0x01, 0x6A, 0x02, 0x0F, 0x10, 0x11
_SUCCESS, _IGNORED, _FAILURE = 0x70, 0x7E, 0x7F
_BOLT_5_4 = b"\x00\x00\x04\x05"


class BoltStub:
    """Answers every message with success, except the refused ones."""

    def __init__(
        self, *, agent: str = "Neo4j/5.26.0", refuse: Mapping[str, str] | None = None
    ) -> None:
        """Listen.

        Args:
            agent: Its own name for itself.
            refuse: `logon`, `begin` or a piece of a query → the code of the error.
        """
        self._agent = agent
        self._refuse = dict(refuse or {})
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            if len(stream.read(20)) < 20:  # a client only tested whether a server listens
                return
            connection.sendall(_BOLT_5_4)
            failed = False
            while message := _message(stream):
                tag = message[1]
                if tag == _GOODBYE:
                    return
                failed = failed and tag != _RESET
                code = "" if failed else self._refused(tag, message)
                if failed:
                    connection.sendall(_chunked(_struct(_IGNORED, {})))
                elif code:
                    failed = True
                    connection.sendall(_chunked(_struct(_FAILURE, {"code": code, "message": "no"})))
                else:
                    said = {"server": self._agent, "connection_id": "c"} if tag == _HELLO else {}
                    connection.sendall(_chunked(_struct(_SUCCESS, said)))

    def _refused(self, tag: int, message: bytes) -> str:
        if tag == _LOGON:
            return self._refuse.get("logon", "")
        if tag == _BEGIN:
            return self._refuse.get("begin", "")
        if tag == _RUN:
            return next((c for part, c in self._refuse.items() if part.encode() in message), "")
        return ""


def _message(stream: BinaryIO) -> bytes:
    whole = b""
    while head := stream.read(2):
        (size,) = struct.unpack(">H", head)
        if size == 0 and whole:
            return whole
        whole += stream.read(size)
    return b""


def _struct(tag: int, said: Mapping[str, str]) -> bytes:
    """Pack a message with one map; a success of RUN needs its fields, and none does not mind them."""
    body = b"".join(_text(name) + _text(value) for name, value in said.items())
    fields = _text("fields") + b"\x90" if tag == _SUCCESS else b""
    return bytes((0xB1, tag, 0xA0 + len(said) + bool(fields))) + body + fields


def _text(text: str) -> bytes:
    raw = text.encode()
    return bytes((0xD0, len(raw))) + raw


def _chunked(message: bytes) -> bytes:
    return struct.pack(">H", len(message)) + message + b"\x00\x00"
