"""Bounded output of a command: its start, its end, its length and hash."""

import hashlib
from collections import deque

from mimir.domain.terminal_text import visible_text


class BoundedOutput:
    """Keeps at most `limit` bytes of pieces of any size."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 3
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._hash = hashlib.sha256()
        self.total = 0
        """Bytes of the whole output."""

    def add(self, piece: bytes) -> None:
        """Add the next piece."""
        self.total += len(piece)
        self._hash.update(piece)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if not piece:
            return
        self._tail.append(piece)
        self._tail_bytes += len(piece)
        while self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
            self._tail_bytes -= len(self._tail.popleft())

    @property
    def hash(self) -> str:
        """SHA-256 of the whole output."""
        return self._hash.hexdigest()

    @property
    def left_out(self) -> int:
        """Bytes that are missing in the middle."""
        return max(0, self.total - len(self._head) - len(self._last_bytes()))

    @property
    def text(self) -> str:
        """The kept output as a terminal shows it; a mark shows where some is missing."""
        tail = self._last_bytes()
        if not self.left_out:
            return _decode_shown(bytes(self._head) + tail)
        return f"{_decode_shown(bytes(self._head))}\n… {self.left_out} bytes are left out here …\n{_decode_shown(tail)}"

    def _last_bytes(self) -> bytes:
        return b"".join(self._tail)[-self._tail_limit :] if self._tail_limit else b""


def _decode_shown(data: bytes) -> str:
    return visible_text(data.decode("utf-8", "replace"))
