"""A TCP proxy on loopback that loses its server, and cuts a connection at the moment when a Bolt client commits."""

import contextlib
import socket
import threading
from typing import Literal

_COMMIT = b"\x00\x02\xb0\x12\x00\x00"
"""Bolt's COMMIT as it goes over the wire, whole."""


class TcpProxy:
    """Hands bytes on, in threads of its own."""

    def __init__(self, host: str, port: int) -> None:
        """Stand before this server; `start` listens."""
        self._target = (host, port)
        self._listening: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        self.port = 0
        self.cut_at_commit: Literal["never", "before", "after", "held"] = "never"
        """The fate of the next COMMIT: cut before the server has it; handed on, its answer lost; or the client is cut at once
        and the server gets it when `release` is set."""
        self.release = threading.Event()
        self.times = 1
        """How many of them in a row."""
        self.cuts = 0
        self.commits = 0
        """How many came by so far."""
        self.cut_number = 0
        """Which one is cut; 0: the next."""

    def start(self) -> None:
        """Listen; on the same port again after `stop`."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections and cut those that are there."""
        if self._listening:
            _end(self._listening)
        self._listening = None
        with self._guard:
            for connection in self._open:
                _end(connection)
            self._open.clear()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection(self._target)
                # Or each small piece waits for the answer to the one before.
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._guard:
                    self._open |= {client, server}
                for job in (self._up, self._down):
                    threading.Thread(target=job, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if _COMMIT in data and self._is_wanted():
                    self._cut(client, server, data)
                    return
                server.sendall(data)
        _end(server)

    def _is_wanted(self) -> bool:
        with self._guard:
            self.commits += 1
            wanted = self.cut_number in (0, self.commits)
        return wanted and self.cut_at_commit != "never"

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        _end(client)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        how, self.times = self.cut_at_commit, self.times - 1
        if not self.times:
            self.cut_at_commit, self.times = "never", 1
        self.cuts += 1
        _end(client)
        if how == "held":
            self.release.wait(200)
        if how != "before":
            server.sendall(data)
            server.recv(65536)  # the answer: it is committed
        _end(server)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
