"""Supervision of checks that start Python: do the programs reach their end? Pure.

Such a program reports nothing but an exit code, which code that it imports may set (`sys.exit(0)`, `os._exit(0)`). So a green run is made
again on the same tree, with a shim before each Python, which runs the program in `supervisor`. Test runners report their end in their
output: see `runner_output`.
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
"""Exit code of a red command with shims whose programs all reached their end."""
_SHIMS = 'eval "$MIMIR_SHIMS"'
_FIND_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_MOST = 50_000
"""Most characters of the list of exempt programs; a word has at most some 130,000 bytes."""


def environment(argv: Sequence[str]) -> Mapping[str, str]:
    """Return the environment of a command from `with_shims`: the shims and the supervisor."""
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
    started = find_programs(argv)  # empty: the command cannot be parsed
    # Assume the worst of a command that cannot be parsed.
    return not started or not all(_is_known(argv, one) for one in started)


def _is_known(argv: Sequence[str], one: ProgramCall) -> bool:
    if one.program == "find" and not _FIND_ACTIONS.isdisjoint(one.arguments):
        return False
    return one.program in test_runners.READERS or is_output_known(argv, one)


def with_shims(
    argv: Sequence[str], work: Iterable[str] = (), *, plain: bool = False
) -> tuple[str, ...]:
    """Return the command with shims before the Python programs that it starts.

    A program that is ended early exits with `supervisor.OPEN`. A command that is red for another reason exits with `NOT_ENDED`.
    Programs at the paths `work` may end themselves. With `plain`, the shims supervise nothing.
    """
    named = "\n".join(path for path in work if "\n" not in path)
    # Without the list, programs of the work are supervised too: stricter, never laxer.
    named = named if len(named) <= _MOST else ""
    return ("sh", "-c", _SHIMS, "sh", "plain" if plain else "watched", named, *argv)


def own_programs(check: Check, changed: Iterable[str]) -> list[str]:
    """Return the changed paths that are the work itself, and not part of its check."""
    # A program that is the work may end with 0 at any time, so supervision proves nothing about it.
    tests = find_check_files(check).all_tests
    return sorted(path for path in changed if not says_it_tests(path) and not matches(path, tests))
