"""Raw HTTP exchanges of an endpoint as a fixture: recorded once below the client, served again without a socket.

    with recording(file): …ask the endpoint…         with playing(file): …ask the same again…

Patches the one transport that the client is built on (httpx2). A line of the file is one exchange: method, path, the request's body, and the
answer as it came, piece by piece. No header of the request is kept (keys stand there), and of the answer only what the client reads.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

KEPT = ("content-type", "retry-after", "date")


class HttpMissError(AssertionError):
    """Something was asked that the fixture does not hold, or not in this order."""


@dataclass(kw_only=True)
class _Pieces(httpx2.AsyncByteStream):
    pieces: Sequence[bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def aclose(self) -> None:
        """Close nothing."""


@dataclass(kw_only=True)
class _Copied(httpx2.AsyncByteStream):
    inner: httpx2.AsyncByteStream
    file: Path
    line: dict[str, object]
    pieces: list[str] = field(default_factory=list)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self.inner:
            self.pieces.append(piece.decode("utf-8", "surrogateescape"))
            yield piece

    async def aclose(self) -> None:
        """Write the exchange: as much of it as was read."""
        await self.inner.aclose()
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**self.line, "pieces": self.pieces}) + "\n")


class _Recorder(httpx2.AsyncHTTPTransport):
    file: Path

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await super().handle_async_request(request)
        kept = [(k, v) for k, v in answer.headers.items() if k.lower() in KEPT]
        line = {**_asked(request), "status": answer.status_code, "headers": kept}
        stream = answer.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        copied = _Copied(inner=stream, file=self.file, line=line)
        return httpx2.Response(answer.status_code, headers=kept, stream=copied)


class _Player(httpx2.AsyncBaseTransport):
    left: list[Mapping[str, object]]

    def __init__(self, **_: object) -> None:
        """Take what the real one takes."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self.left:
            raise HttpMissError("the fixture has no exchange left")
        line, now = self.left.pop(0), _asked(request)
        for name, value in now.items():
            if line[name] != value:
                raise HttpMissError(f"{name}: recorded {line[name]!r}, now {value!r}")
        pieces = [str(p).encode("utf-8", "surrogateescape") for p in line["pieces"]]  # type: ignore[attr-defined]
        headers = [(str(k), str(v)) for k, v in line["headers"]]  # type: ignore[attr-defined]
        return httpx2.Response(
            int(str(line["status"])), headers=headers, stream=_Pieces(pieces=pieces)
        )


@contextlib.contextmanager
def recording(file: Path) -> Iterator[None]:
    """Write every exchange of clients that are made in the block."""
    made = type("Recorder", (_Recorder,), {"file": file})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2, "AsyncHTTPTransport", made)
        yield


@contextlib.contextmanager
def playing(file: Path) -> Iterator[None]:
    """Serve exchanges in their order to clients that are made in the block; all of them must be asked for.

    Raises:
        HttpMissError: One is left over.
    """
    left = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    made = type("Player", (_Player,), {"left": left})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx2, "AsyncHTTPTransport", made)
        yield
    if left:
        raise HttpMissError(f"{len(left)} exchanges were not asked for")


def _asked(request: httpx2.Request) -> dict[str, object]:
    return {
        "method": request.method,
        "path": request.url.path,
        "body": json.loads(request.content or b"null"),
    }
