"""One cell of the matrix of model faults: a fault, its role, and one of three calls; and the result.

The model is a real server, the client the real one, the run a whole one. The task is a question, so that no check stands in for
the model: an accepted answer is an answer.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mimir.bootstrap import app
from mimir.domain.run import RunBudget
from mimir.errors import MimirError, Paused
from mimir.llm.scripted.faults import FAULTS
from mimir.orchestrator.api import Mimir
from mimir.planning.renderer import render
from mimir.settings import layers
from mimir.store.schema import NodeLabel
from tests.support.run_facts import Facts, gather, store_of
from tests.support.script_server import PlayServer
from tests.support.stored_rows import run_row
from tests.support.virtual_waiting import WARP, Warp
from tests.support.whole_run import PLAN_PATH, REST, calls, plan, start, step

Role = Literal["pm", "worker", "qc"]
ROLES: tuple[Role, ...] = ("pm", "worker", "qc")
PLACES = ("first", "middle", "last")
KEY = "sk-cell-0123456789abcdef"

FATAL: Mapping[str, str] = {
    "unauthorized": "llm.api_key",
    "payment_required": "llm.api_key",
    "forbidden": "llm.api_key",
    "no_credit": "llm.api_key",
    "unknown_model": "llm.model",
    "wrong_address": "llm.base_url",
    "redirect": "llm.base_url",
}
"""Configuration error → the setting that is named."""
REFUSED = {"context_length", "filtered", "bad_request"}
"""Faults that end one conversation."""
WAITS: Mapping[str, float] = {
    "rate_limited": 7.0,
    "rate_limited_date": 7.0,
    "rate_limited_absurd": 120.0,
    "rate_limited_negative": 0.0,
}
"""Seconds that the endpoint asks to wait, as far as they are believed."""
ODD = {name for name, fault in FAULTS.items() if fault.kind == "answer"}
PASSING = sorted(FAULTS.keys() - FATAL.keys() - REFUSED - ODD - {"unsupported_parameter"})

ANSWER = "The README calls it a project, and nothing in it says anything else about what it is for."
REQUEST = "Say what this is"
ONE = replace(plan(step("a", checks=(), max_retries=1), title="One question"), request=REQUEST)
_LOOK = ({"calls": [calls("list_files")]}, {"calls": [calls("read_file", path="README.md")]})
_LAST: Mapping[Role, Mapping[str, object]] = {
    "pm": {"text": render(ONE)},
    "worker": {"text": ANSWER},
    "qc": {"verdict": {"auto": "pass"}},
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fault at one place."""

    fault: str
    role: Role
    place: int
    lasts: bool = False
    """True: until it is repaired; False: once."""

    def __str__(self) -> str:
        return f"{self.fault} × {self.role} × {PLACES[self.place]}{' × lasting' * self.lasts}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """End of a run with a fault, before any repair."""

    exit_code: int
    message: str
    status: str = ""
    """Of the run, from its event; empty: planning has no such event."""


class Run:
    """The run of one cell."""

    def __init__(self, cell: Cell, where: Path) -> None:
        self.cell = cell
        self.warp = Warp()
        self.project = start(where)
        self.broken = where / "broken"
        self.run = ""
        self._text: str | None = None

    def play(self) -> dict[str, object]:
        """Return the script: each role has three turns, the last of them as often as needed."""
        return {"parts": [*(self._part(role) for role in ROLES), *REST]}

    def _part(self, role: Role) -> dict[str, object]:
        turns: list[dict[str, object]] = [dict(turn) for turn in (*_LOOK, _LAST[role])]
        if role == self.cell.role:
            fault: dict[str, object] = {"name": self.cell.fault, "seconds": 7}
            if self.cell.lasts:
                fault["while_file"] = str(self.broken)
            if self.cell.fault == "unsupported_parameter":
                fault["parameter"] = "temperature"
            turns[self.cell.place]["fault"] = fault
        spare = {**_LAST[role], "repeat": "forever"}
        return {"role": role, "turns": [*turns, spare], "closing": dict(_LAST[role])}

    @contextlib.asynccontextmanager
    async def opened(self, server: PlayServer) -> AsyncGenerator[Mimir]:
        WARP.set(self.warp)
        given = {
            "llm.base_url": server.url,
            "llm.api_key": KEY,
            "llm.model": "play",
            "llm.lane_header": True,
            "llm.stall_seconds": 2 if "stall" in self.cell.fault else 60,
            "llm.max_answer_bytes": 200_000,
            "llm.tries": 3,
            "llm.requests_per_minute": None,
        }
        loaded = layers.load(self.project, given, {"HOME": str(self.project.parent)})
        async with app.open(self.project, loaded) as mimir:
            yield mimir

    async def go(self, mimir: Mimir, *, resumed: bool) -> Outcome:
        """Plan, or run the one task, to its end or to a pause."""
        try:
            return await self._go(mimir, resumed=resumed)
        except Paused as paused:
            return Outcome(exit_code=paused.exit_code, message=_error_text(paused), status="paused")
        except MimirError as error:
            return Outcome(exit_code=error.exit_code, message=_error_text(error))
        finally:
            self.run = await self._only_run()

    async def _go(self, mimir: Mimir, *, resumed: bool) -> Outcome:
        if self.cell.role == "pm" and not resumed:
            planned = await mimir.plan(REQUEST, ecko=False, output=None, model="")
            return Outcome(exit_code=planned.exit_code, message="")
        if not resumed:
            await mimir.create_run(ONE, PLAN_PATH, only=(), limits=RunBudget())
        run = self.run or await self._only_run()
        ending = await mimir.drive(
            run, workers=1, apply="never", limits=RunBudget(), resumed=resumed
        )
        return Outcome(
            exit_code=ending.exit_code,
            message=f"{ending.message} {ending.next_step}",
            status=ending.outcome.value,
        )

    async def _only_run(self) -> str:
        async with store_of(self.project) as store:
            [row] = await store.read(lambda reads: reads.find(NodeLabel.RUN, {}))
        return str(row["id"])

    async def row(self) -> Mapping[str, object]:
        """Return the run's own node."""
        async with store_of(self.project) as store:
            return await store.read(lambda reads: dict(run_row(reads, self.run)))

    async def facts(self) -> Facts:
        """Return all of a run of tasks."""
        return await gather(self.project, self.run)


def _error_text(error: MimirError) -> str:
    return f"{error} {error.next_step or ''}"
