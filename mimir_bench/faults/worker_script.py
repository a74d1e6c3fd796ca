"""Scripts of workers: turns of the scripted model, and the fault around them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mimir.domain.plan import Task
from mimir_bench.faults.fault_case import Files
from mimir_bench.faults.record_rewriting import Rewriting

Turn = Mapping[str, object] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerScript:
    """Script of one worker's attempt."""

    version: str
    """Variant of the operator."""
    turns: tuple[Turn, ...]
    altered: tuple[tuple[str, str], ...] = ()
    """Texts in tool results and their replacements for the worker."""
    rewriting: Rewriting | None = None
    """Manipulation of the failed run's records; None: none."""
    tasks: tuple[Task, ...] = ()
    """Plan of this run; empty: that of the case."""
    earlier: Mapping[str, tuple[Turn, ...]] = field(default_factory=dict[str, tuple[Turn, ...]])
    """Task before the target → its turns; absent: the right work of the case."""


def call(tool: str, **arguments: object) -> Turn:
    """Return a turn that calls one tool."""
    return {"calls": [{"tool": tool, "arguments": arguments}]}


def reads(path: str) -> Turn:
    """Return a turn that reads a file."""
    return call("read_file", path=path)


def writes(files: Files) -> list[Turn]:
    """Return one turn for each file that writes it with the file tool."""
    return [call("write_file", path=path, content=text) for path, text in files.items()]


def pours(files: Files) -> list[Turn]:
    """Return one turn for each file that writes it with a command, past the file rights."""
    return [
        call("run", argv=["python3", "-S", "-c", _POUR, path, text]) for path, text in files.items()
    ]


def runs(argv: Sequence[str]) -> Turn:
    """Return a turn that runs a command."""
    return call("run", argv=list(argv))


# Path and text are arguments, so that no shell quoting is needed.
_POUR = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.parent.mkdir(parents=True, exist_ok=True); p.write_text(sys.argv[2])"
