"""A real HTTP server that speaks the OpenAI chat protocol from a play, with every fault that a play can stage.

In a test: `with PlayServer(play) as server: … server.url … server.requests`.
For another process: `python -m tests.support.script_server PLAY.yaml --port-file F --log F`; the log gets one JSON line a request,
written before it is answered, so that the log has each request even if the engine dies.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from mimir.domain.message import Answer
from mimir.errors import ModelError
from mimir.llm.scripted import loader
from mimir.llm.scripted.faults import FAULTS
from mimir.llm.scripted.script import ModelScript, ScriptedTurn, TurnFault, script_request
from mimir.llm.scripted.scripted_model import ScriptState, build_answer
from tests.support import script_responses as wire
from tests.support.script_requests import Caller, caller, read_request
from tests.support.script_responses import Line

_POLL_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request as it came."""

    caller: Caller
    turn: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    connection: int
    """Number of the connection that it came on."""
    fault: str = ""

    @property
    def hash(self) -> str:
        """Return the parts that two equal requests share."""
        text = json.dumps(self.body, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def line(self) -> dict[str, object]:
        """Return the logged part: no time, no text."""
        name = self.caller.name
        return {
            "lane": self.caller.lane,
            "task": name.task,
            "attempt": name.attempt,
            "role": name.role,
            "turn": self.turn,
            "messages": len(self.body.get("messages", ())),
            "hash": self.hash,
            "model": self.body.get("model"),
            "parameters": sorted(self.body),
            "fault": self.fault,
        }


def read_play(play: ModelScript | Path | str | Mapping[str, object]) -> ModelScript:
    """Read a play from a file, from YAML text, or from a document."""
    if isinstance(play, ModelScript):
        return play
    if isinstance(play, Path):
        return loader.load_script(play)
    return loader.parse(play) if isinstance(play, str) else loader.from_value(dict(play))


class PlayServer:
    """The server, in a thread of its own."""

    def __init__(
        self,
        play: ModelScript | Path | str | Mapping[str, object],
        *,
        log: Path | None = None,
        bodies: Path | None = None,
        port: int = 0,
        key: str = "",
        streams: bool = True,
        down_file: Path | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.requests: list[Seen] = []
        """All requests so far; the same as in the log."""
        self.port = port
        self._stage = ScriptState(read_play(play))
        self._log = log
        self._bodies = bodies
        self._key = key
        self._streams = streams
        self._down_file = down_file
        self._sleep = sleep
        self._lines: dict[Line, asyncio.Task[None]] = {}
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._may_end = asyncio.Event()

    @property
    def url(self) -> str:
        """The `base_url` of this endpoint."""
        return f"http://127.0.0.1:{self.port}/v1"

    def of(self, role: str = "", task: str = "", attempt: int = 0) -> list[Seen]:
        """Return the requests of a role, a task, an attempt."""
        return [
            seen
            for seen in self.requests
            if role in ("", seen.caller.name.role)
            and task in ("", seen.caller.name.task)
            and attempt in (0, seen.caller.name.attempt)
        ]

    # In a thread, for tests.

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._serve(started),), daemon=True
        )
        self._thread.start()
        assert started.wait(200), "the play server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._may_end.set)
        self._thread.join(10)
        assert not self._thread.is_alive(), "the play server did not end"

    def refuse(self) -> None:
        """Close the port: connections are refused until `accept`."""
        self._call(self._close())

    def accept(self) -> None:
        """Open the same port again."""
        self._call(self.open())

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        await self.open()
        started.set()
        await self._may_end.wait()
        await self._shut_down()

    def _call(self, work: Any) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    # On a loop.

    async def open(self) -> None:
        """Listen."""
        if self._listening is None:
            self._listening = socket.create_server(("127.0.0.1", self.port), backlog=100)
            self._listening.setblocking(False)
            self.port = self._listening.getsockname()[1]
            asyncio.get_running_loop().add_reader(self._listening, self._accept)

    async def watch(self) -> None:
        """Refuse connections as long as the down file is there."""
        assert self._down_file is not None
        while True:
            if self._down_file.exists():
                await self._close()
            else:
                await self.open()
            await asyncio.sleep(_POLL_SECONDS)

    async def _close(self) -> None:
        listening, self._listening = self._listening, None
        if listening is not None:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        for line in self._lines:
            line.reset()

    async def _shut_down(self) -> None:
        """Close, and wait for every connection: one may just have been accepted, or be on its way out."""
        await self._close()
        told: set[Line] = set()
        while self._tasks:
            for line in self._lines.keys() - told:
                line.reset()
                self._lines[line].cancel()
                told.add(line)
            await asyncio.sleep(0)

    def _accept(self) -> None:
        """Take a connection; `asyncio.Server` would leave one open that comes while it closes."""
        assert self._listening is not None
        with contextlib.suppress(BlockingIOError, ConnectionError):
            sock, _ = self._listening.accept()
            task = asyncio.create_task(self._connected(sock))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connected(self, sock: socket.socket) -> None:
        line = Line(*await asyncio.open_connection(sock=sock))
        task = asyncio.current_task()
        assert task is not None
        self._lines[line] = task
        self._connections += 1
        number = self._connections
        try:
            while await self._served(line, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            line.writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await line.writer.wait_closed()
            del self._lines[line]

    async def _served(self, line: Line, connection: int) -> bool:
        """Serve one request; False when the connection is to end."""
        head = (await line.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.split("\r\n")
        method, address, _ = first.split(" ", 2)
        path = urlsplit(address).path  # of a proxy it is a whole address
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (row.partition(":") for row in rest if row)
        }
        data = await line.reader.readexactly(int(headers.get("content-length", "0")))
        if self._key and headers.get("authorization") != f"Bearer {self._key}":
            said = f"Incorrect API key provided: {headers.get('authorization', '')[7:]}."
            await line.whole(401, wire.JSON, wire.error_body(said, "invalid_api_key"))
        elif method == "GET" and path == "/v1/models":
            await line.whole(200, wire.JSON, b'{"object":"list","data":[{"id":"play"}]}')
        elif method == "POST" and path == "/v1/chat/completions":
            return await self._completion(line, connection, headers, json.loads(data))
        else:
            await line.whole(404, wire.PAGE, wire.page("404 page not found"))
        return True

    async def _completion(
        self, line: Line, connection: int, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> bool:
        asked = caller(headers, body, self._stage.play.roles)
        request = read_request(body)
        name = asked.name
        at = script_request(
            name.role,
            name.task,
            name.attempt,
            request.messages,
            lane=name.last,
            closing=request.tool_choice == "none",
        )
        seen = Seen(
            caller=asked, turn=at.turn, body=body, headers=dict(headers), connection=connection
        )
        try:
            turn = self._stage.next_turn(asked.lane, at)
            turn = _struck(turn, body)
            answer = build_answer(turn, at, request)
        except ModelError as error:
            self._note(replace(seen, fault="no_line"))
            await line.whole(403, wire.JSON, wire.error_body(str(error), "no_line"))
            return True
        self._note(replace(seen, fault=turn.fault.name if turn.fault else ""))
        if turn.delay_seconds:
            await self._sleep(turn.delay_seconds)
        if not self._streams:
            body = {**body, "stream": False}
        return await self._send(line, body, answer, turn.fault)

    async def _send(
        self, line: Line, body: Mapping[str, Any], answer: Answer, fault: TurnFault | None
    ) -> bool:
        """Send the answer or the fault; False when the connection is to end."""
        return await _answered(line, body, answer, fault)

    def _note(self, seen: Seen) -> None:
        self.requests.append(seen)
        for path, row in ((self._log, seen.line()), (self._bodies, seen.body)):
            if path is not None:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def _struck(turn: ScriptedTurn, body: Mapping[str, Any]) -> ScriptedTurn:
    """Return the turn without its fault if that does not concern this request."""
    fault = turn.fault
    if fault is not None and fault.name == "unsupported_parameter" and fault.parameter not in body:
        return replace(turn, fault=None)
    return turn


async def _answered(
    line: Line, body: Mapping[str, Any], answer: Answer, staged: TurnFault | None
) -> bool:
    """Send the answer or the fault; False when the connection is to end."""
    fault = FAULTS[staged.name] if staged else None
    if staged is not None and fault is not None and fault.kind == "status":
        said, code = fault.says, fault.code
        if staged.parameter:
            said = f"Unsupported parameter: '{staged.parameter}' is not supported with this model."
        data = wire.page(said) if fault.html else wire.error_body(said, code, staged.parameter)
        kind = wire.PAGE if fault.html else wire.JSON
        headers = wire.retry_after(fault, staged)
        if fault.status == 302:
            headers = [("Location", "http://127.0.0.1:9/elsewhere")]
        await line.whole(fault.status, kind, data, headers)
        return True
    name = staged.name if staged is not None and fault is not None else ""
    if name == "refused":
        line.reset()
        return False
    if name == "stall_first_byte":
        await line.stall()
        return False
    if name == "html_page":
        await line.whole(200, wire.PAGE, wire.page("Welcome"))
        return True
    if body.get("stream"):
        return await _streamed(line, body, answer, name)
    return await _whole(line, answer, name)


async def _streamed(line: Line, body: Mapping[str, Any], answer: Answer, fault: str) -> bool:
    options: Mapping[str, Any] = body.get("stream_options") or {}
    usage = bool(options.get("include_usage"))
    rows = [*wire.events(answer, usage=usage), wire.DONE]
    await line.head(200, wire.PLAIN if fault == "wrong_content_type" else wire.SSE)
    for row in wire.broken(rows, fault):
        await line.chunk(row)
    if fault == "reset":
        line.reset()
        return False
    if fault == "stall_middle":
        await line.stall()
        return False
    await line.end()
    return True


async def _whole(line: Line, answer: Answer, fault: str) -> bool:
    data = wire.body(answer)
    if fault in ("truncated_json", "cut_stream"):
        data = data[: len(data) // 2]
    if fault == "invalid_json":
        data = b"{this is no json}"
    if fault == "error_in_stream":
        data = wire.error_body("upstream failed", "server_error")
    kind = wire.PLAIN if fault == "wrong_content_type" else wire.JSON
    await line.head(200, kind)
    while fault in ("endless", "endless_pings"):
        await line.chunk(b" " * 65_536)
    if fault == "huge":  # in pieces: the memory that is measured may be of the same process
        before, _, data = data.partition(b'"content": ')
        await line.chunk(before + b'"content": "')
        for _ in range(wire.HUGE_BYTES // 50_000):
            await line.chunk(b"x" * 50_000)
        data = b'", "_": ' + data
    half = fault in ("reset", "stall_middle")
    await line.chunk(data[: len(data) // 2] if half else data)
    if fault == "reset":
        line.reset()
        return False
    if fault == "stall_middle":
        await line.stall()
        return False
    await line.end()
    return True


async def _serve(server: PlayServer, port_file: Path | None, *, watched: bool) -> None:
    await server.open()
    if port_file is not None:
        part = port_file.with_name(port_file.name + ".part")
        part.write_text(str(server.port))
        part.replace(port_file)
    print(os.getpid(), flush=True)
    if watched:
        await server.watch()
    await asyncio.Event().wait()


def main() -> None:
    """Serve a play until the process is ended."""
    parser = argparse.ArgumentParser(description="Serve a play as an OpenAI-compatible endpoint.")
    parser.add_argument("play", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, help="gets the port, once it is open")
    parser.add_argument("--log", type=Path, help="gets one JSON line a request")
    parser.add_argument("--bodies", type=Path, help="gets the body of each request")
    parser.add_argument("--key", default="", help="wanted key; without it any is accepted")
    parser.add_argument("--down-file", type=Path, help="refuse connections while it is there")
    given = parser.parse_args()
    server = PlayServer(
        given.play,
        port=given.port,
        log=given.log,
        bodies=given.bodies,
        key=given.key,
        down_file=given.down_file,
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server, given.port_file, watched=given.down_file is not None))


if __name__ == "__main__":
    main()
