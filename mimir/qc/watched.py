"""Checks that start Python programs, rewritten so that it is seen whether these come to their end. Pure, but for texts that lie beside it.

Such a program says nothing that is known: its exit code is all there is, and what it imports may set that (`sys.exit(0)`, `os._exit(0)`). So
a run that is green is made once more by `watcher`, on the same tree. Runners of tests say at their end what they did: `ending`.

Programs that a check names itself are rewritten where they stand (`watched`). Those that others start for it (`make`, a script, a line with
a pipe in it) are met by a shim (`with_shims`).
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mimir.qc import runners, watcher
from mimir.qc.commandline import PYTHON, Command, commands, shell_line, unwrapped
from mimir.qc.ending import is_heard

ENDED_EARLY = (0, watcher.OPEN)
"""Exit codes of a watched command that did not come to its end."""
LAUNCH = 'import os; exec(compile(os.environ.pop("MIMIR_WATCHER"), "<mimir>", "exec"))'
_SHIMS = 'eval "$MIMIR_SHIMS"'
_OPTION = re.compile(r"-[bBdEIOPqRsSuvx]+")
_OPTION_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_TOKEN = re.compile(
    r"""[ \t]*(?:(?P<sign>&&|;)|(?P<word>(?:'[^']*'|"[^"\\]*"|[^\s'"\\;&|<>()`#])+))"""
)
"""Of a line that is read word by word; what is written otherwise is not rewritten."""
_QUOTES = re.compile("['\"]")
_FOUND_AND_RUN = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_RESERVED = frozenset(
    (
        *("!", "{", "}", "if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while"),
        *("until", "case", "esac", "function", "exit", "trap", "return", "eval"),
    )
)
_SEEN = f"{{ s=0; %s || s=$?; case $s in {watcher.END}) ;; 0|{watcher.OPEN}) exit {watcher.OPEN};; *) exit 1;; esac; }}"


def environment(argv: Sequence[str]) -> Mapping[str, str]:
    """Return what a watched command needs in its environment: the watcher itself, and shims."""
    has_shims = _SHIMS in argv
    if not has_shims and not any(LAUNCH in word for word in argv):
        return {}
    found = {"MIMIR_WATCHER": _text("watcher.py")}
    if has_shims:
        found |= {
            "MIMIR_SHIMS": _text("with_shims.sh"),
            "MIMIR_SHIM": _text("shim.sh"),
            "MIMIR_REROUTING": _text("rerouting.py"),
            "MIMIR_READERS": " ".join(sorted(runners.READERS)),
        }
    return found


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def may_start_others(argv: Sequence[str]) -> bool:
    """True if a command may start Python programs that it does not name: not all that it starts is known to tell of its end, or to read."""
    started = commands(argv)  # none: it cannot be read
    return not started or not all(_is_known(argv, one) for one in started)


def with_shims(argv: Sequence[str], *, plain: bool = False) -> tuple[str, ...]:
    """Return the command that runs the same with shims before the Python programs that it starts.

    It ends as it would without them, but for a program that was ended: that ends with `watcher.OPEN`, and all else follows from it.

    Args:
        argv: The command.
        plain: The shims watch nothing: what is red like this, too, cannot be run with shims at all.
    """
    return ("sh", "-c", _SHIMS, "sh", "plain" if plain else "watched", *argv)


def _is_known(argv: Sequence[str], one: Command) -> bool:
    if one.program == "find" and not _FOUND_AND_RUN.isdisjoint(one.arguments):
        return False
    if one.program in runners.READERS or is_heard(argv, one):
        return True
    is_python = one.module or PYTHON.fullmatch(one.program) is not None
    return is_python and watched(argv) is not None


def watched(argv: Sequence[str]) -> tuple[str, ...] | None:
    """Return the command that runs the same Python programs watched; None: it runs none, or cannot be read."""
    line = shell_line(argv)
    if line is None:
        at = _target(argv)
        return None if at is None else (*argv[:at], "-c", LAUNCH, *argv[at:])
    seen = _watched_line(line)
    return None if seen is None or argv[-1] != line else (*argv[:-1], seen)


def _target(words: Sequence[str]) -> int | None:
    """Return where the words that name a Python program begin; None: it is none, or one that tells what it did."""
    started = commands(words)
    known = runners.COLLECTED.keys() | runners.READERS
    if any(one.program in known for one in started):
        return None
    at = len(words) - len(unwrapped(list(words)))
    if at == len(words) or PYTHON.fullmatch(words[at].rpartition("/")[2]) is None:
        return None
    at += 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-c", "-m"):
        if words[at] in _OPTION_WITH_VALUE:
            at += 2
        elif _OPTION.fullmatch(words[at]):
            at += 1
        else:
            return None
    needed = 2 if at < len(words) and words[at] in ("-c", "-m") else 1
    return at if at + needed <= len(words) else None


def _watched_line(line: str) -> str | None:
    """Rewrite a shell line whose commands follow one another; every word stays as it stands there."""
    parts, between = [list[str]()], list[str]()
    at = 0
    while at < len(line.rstrip()):
        token = _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        if token["sign"]:
            between.append(token["sign"])
            parts.append([])
        else:
            parts[-1].append(token["word"])
    if not _RESERVED.isdisjoint(word for part in parts for word in part):
        return None
    rewritten = [_watched_part(part) for part in parts]
    if all(part is None for part in rewritten):
        return None
    told = [new or " ".join(part) for new, part in zip(rewritten, parts, strict=True)]
    joined = "".join(f"{part} {sign}\n" for part, sign in zip(told, [*between, ""], strict=True))
    return f"{joined}s=$?; [ $s -eq 0 ] || exit $s; exit {watcher.END}"


def _watched_part(part: Sequence[str]) -> str | None:
    at = _target([_QUOTES.sub("", word) for word in part])
    if at is None:
        return None
    return _SEEN % " ".join((*part[:at], "-c", shlex.quote(LAUNCH), *part[at:]))
