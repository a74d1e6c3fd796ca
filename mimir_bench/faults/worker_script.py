"""What a played worker says and does in its attempt: turns of a play, and what happens around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mimir_bench.faults.fault_case import Files
from mimir_bench.faults.record_rewriting import Rewriting

Turn = Mapping[str, object] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerScript:
    """One worker's attempt, and the fault around it."""

    version: str
    """Which of the operator's variants it is."""
    turns: tuple[Turn, ...]
    altered: tuple[tuple[str, str], ...] = ()
    """What tools say → what reaches the worker instead."""
    rewriting: Rewriting | None = None
    """How the records of the failed run are rewritten to say `completed`. None: they are left alone."""


def call(tool: str, **arguments: object) -> Turn:
    """Return a turn that wishes for one tool."""
    return {"calls": [{"tool": tool, "arguments": arguments}]}


def reads(path: str) -> Turn:
    """Return a turn that reads a file."""
    return call("read_file", path=path)


def writes(files: Files) -> list[Turn]:
    """Return a turn a file that writes it with the file tool."""
    return [call("write_file", path=path, content=text) for path, text in files.items()]


def pours(files: Files) -> list[Turn]:
    """Return a turn a file that writes it by a command, past the rights of the file tools."""
    return [
        call("run", argv=["python3", "-S", "-c", _POUR, path, text]) for path, text in files.items()
    ]


def runs(argv: Sequence[str]) -> Turn:
    """Return a turn that runs a command."""
    return call("run", argv=list(argv))


_POUR = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.parent.mkdir(parents=True, exist_ok=True); p.write_text(sys.argv[2])"
