"""Raw HTTP exchanges of an endpoint as a fixture: recorded once below the client, served again without a socket.

    with recording(file): …ask the endpoint…         with playing(file): …ask the same again…

Stands in for the endpoint's connections. A line of the file is one exchange: the request's body, and the answer as it came, piece by
piece. No header of the request is kept (keys are there), and of the answer only the part that the client reads.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from pathlib import Path

import pytest

from mimir.llm.config import EndpointConfig
from mimir.llm.openai import endpoint
from mimir.llm.openai.transport import ConnectionPool, HttpReply

KEPT = ("content-type", "retry-after", "date")


class HttpMissError(AssertionError):
    """Something was asked that the fixture does not hold, or not in this order."""


class _Recorder(ConnectionPool):
    file: Path

    async def post(self, content: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Post, and write the exchange down once the answer is closed: as much of it as was read."""
        reply, pieces = await super().post(content, headers), list[str]()
        kept = {k.lower(): v for k, v in reply.headers.items() if k.lower() in KEPT}
        line = {"body": json.loads(content), "status": reply.status, "headers": kept}

        def close() -> None:
            reply.close()
            with self.file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({**line, "pieces": pieces}) + "\n")

        copied = _copied(reply.pieces, pieces)
        return HttpReply(status=reply.status, headers=kept, pieces=copied, close=close)


async def _copied(arriving: AsyncIterator[bytes], pieces: list[str]) -> AsyncIterator[bytes]:
    async for piece in arriving:
        pieces.append(piece.decode("utf-8", "surrogateescape"))
        yield piece


class _Player:
    left: list[dict[str, object]]

    def __init__(self, config: EndpointConfig) -> None:
        """Accept the arguments of the real one."""

    async def post(self, content: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Answer with the next exchange."""
        if not self.left:
            raise HttpMissError("the fixture has no exchange left")
        line, now = self.left.pop(0), json.loads(content)
        if line["body"] != now:
            raise HttpMissError(f"body: recorded {line['body']!r}, now {now!r}")
        pieces = [str(p).encode("utf-8", "surrogateescape") for p in line["pieces"]]  # type: ignore[attr-defined]
        headers = {str(k): str(v) for k, v in line["headers"].items()}  # type: ignore[attr-defined]
        return HttpReply(
            status=int(str(line["status"])),
            headers=headers,
            pieces=_played(pieces),
            close=lambda: None,
        )

    async def aclose(self) -> None:
        """Close nothing."""


async def _played(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@contextlib.contextmanager
def recording(file: Path) -> Generator[None]:
    """Write every exchange of endpoints that are made in the block."""
    made = type("Recorder", (_Recorder,), {"file": file})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoint, "ConnectionPool", made)
        yield


@contextlib.contextmanager
def playing(file: Path) -> Generator[None]:
    """Serve exchanges in their order to endpoints that are made in the block; all of them must be asked for.

    Raises:
        HttpMissError: One is left over.
    """
    left = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    made = type("Player", (_Player,), {"left": left})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoint, "ConnectionPool", made)
        yield
    if left:
        raise HttpMissError(f"{len(left)} exchanges were not asked for")
