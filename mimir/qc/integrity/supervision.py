"""Checks that start Python programs, run so that it is seen whether these come to their end. Pure, but for texts that lie beside it.

Such a program says nothing that is known: its exit code is all there is, and what it imports may set that (`sys.exit(0)`, `os._exit(0)`). So
a run that is green is made once more, on the same tree, with shims before each Python, which run its program by `watcher`. Runners of
tests say at their end what they did: `ending`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mimir.domain.globs import matches
from mimir.domain.plan import Check
from mimir.qc.integrity import test_runners
from mimir.qc.integrity.check_files import find_check_files, says_it_tests
from mimir.qc.integrity.command_line import ProgramCall, find_programs
from mimir.qc.integrity.runner_output import is_output_known

NOT_ENDED = 93
"""Exit code of a command with shims that is red, though no program of it was ended."""
_SHIMS = 'eval "$MIMIR_SHIMS"'
_FOUND_AND_RUN = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_MOST = 50_000
"""Characters of the names of programs that are left alone; one word of a command may have some 130,000 bytes."""


def environment(argv: Sequence[str]) -> Mapping[str, str]:
    """Return what a command needs in its environment that `with_shims` made: the shims, and the watcher."""
    if _SHIMS not in argv:
        return {}
    return {
        "MIMIR_SHIMS": _text("with_shims.sh"),
        "MIMIR_SHIM": _text("shim.sh"),
        "MIMIR_REROUTING": _text("sitecustomize_shim.py"),
        "MIMIR_WATCHER": _text("supervisor.py"),
        "MIMIR_READERS": " ".join(sorted(test_runners.READERS)),
    }


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def may_be_ended(argv: Sequence[str]) -> bool:
    """True if a command may start Python programs of which only the exit code is known."""
    started = find_programs(argv)  # none: it cannot be read
    return not started or not all(_is_known(argv, one) for one in started)


def _is_known(argv: Sequence[str], one: ProgramCall) -> bool:
    if one.program == "find" and not _FOUND_AND_RUN.isdisjoint(one.arguments):
        return False
    return one.program in test_runners.READERS or is_output_known(argv, one)


def with_shims(
    argv: Sequence[str], work: Iterable[str] = (), *, plain: bool = False
) -> tuple[str, ...]:
    """Return the command that runs the same with shims before the Python programs that it starts.

    A program that is ended in it ends with `watcher.OPEN`, and all else follows from that. A command that is red without it ends with `NOT_ENDED`.

    Args:
        argv: The command.
        work: Paths of programs that may end themselves as they like, and call what ends them.
        plain: The shims watch nothing: what is red like this, too, cannot be run with shims at all.
    """
    named = "\n".join(path for path in work if "\n" not in path)
    named = named if len(named) <= _MOST else ""
    return ("sh", "-c", _SHIMS, "sh", "plain" if plain else "watched", named, *argv)


def own_programs(check: Check, changed: Iterable[str]) -> list[str]:
    """Return those of the changed paths that are the work, and nothing that checks it.

    A program that is itself the work may end with 0 whenever it likes, whatever is done about it: nothing is proven by watching it.
    """
    tests = find_check_files(check).all_tests
    return sorted(path for path in changed if not says_it_tests(path) and not matches(path, tests))
