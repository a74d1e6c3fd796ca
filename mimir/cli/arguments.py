"""Command line arguments: requests, plans, task ids, times and amounts of money.

A value that cannot be read is refused with the nearest valid one.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mimir.domain.value_class import value_class
from mimir.errors import Location, PlanError, UsageError

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

PLAN_NAME = "chain-output.md"
CHAINS = "chains"
MAX_REQUEST_CHARS = 1_000_000
_MAX_VALUE = 100_000
# Patterns are texts, which `re` compiles at first use: `mimir --help` needs none.
_TASK = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_TIME = r"(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)(?:m|$))?(?:(?P<s>\d+(?:\.\d+)?)s)?"
_AMOUNT = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_MAKE_PLAN = 'mimir chain "REQUEST"'
_RUN_REQUEST = 'mimir execute "REQUEST"'


@value_class
class PlanOrRequest:
    """The argument of `execute`: the file of a plan, or a request."""

    plan: Path | None = None
    request: str = ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to `word`; empty: none is."""
    import difflib  # for usage errors only; `mimir --help` does not wait for it

    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return found[0] if found else ""


def read_request(words: Sequence[str], project: Path) -> str:
    """Return a request or other text: the arguments, `-` for standard input, or `@file`.

    Raises:
        UsageError: The request is empty or too long, or its file cannot be read.
        PlanError: The file or the input is not UTF-8.
    """
    argument = " ".join(words)
    if argument == "-":
        text = _decode(_read_stdin(), "standard input")
    elif argument.startswith("@"):
        text = _decode(_read_file(project, argument[1:]), argument[1:])
    else:
        text = argument
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(
                "The request is not UTF-8 text.", next_step="Write the request in UTF-8."
            ) from None
    if not text.strip():
        raise UsageError("The text is empty.", next_step="Write it, or name a file: @FILE")
    if len(text) > MAX_REQUEST_CHARS:
        raise UsageError(f"The request is longer than {MAX_REQUEST_CHARS} characters.")
    return text


def start_of(since: str, now: "datetime") -> str:
    """Return the time that a date, or a duration such as `12h` or `7d`, means; empty: any.

    Raises:
        UsageError: It is neither.
    """
    from datetime import UTC, datetime, timedelta

    from mimir.domain.clock import stamp

    if not since:
        return ""
    try:
        if found := re.fullmatch(r"([0-9]{1,5})(h|d|w)", since):
            hours = int(found[1]) * {"h": 1, "d": 24, "w": 168}[found[2]]
            return stamp(now - timedelta(hours=hours))
        date = datetime.fromisoformat(since)
        # A date without a zone is one of UTC, as all times in the lists of runs.
        return stamp(date if date.tzinfo else date.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{since[:40]!r} is no date and no duration.",
            next_step="Write a date such as 2026-01-31, or a duration such as 12h or 7d.",
        ) from None


def find_plan(project: Path, name: str) -> Path | None:
    """Return the file of a plan: a path, a folder with a plan, or a folder of `chains/`."""
    if not name:
        return None
    # A path wins over a folder of `chains/` with the same name.
    for path in (project / name, project / CHAINS / name):
        if _exists(path, directory=True):
            path = path / PLAN_NAME
        if _exists(path, directory=False):
            return path
    return None


def plans_of(project: Path) -> list[Path]:
    """Return the plans in `chains/`, sorted by folder name."""
    try:
        return sorted(p for p in (project / CHAINS).glob(f"*/{PLAN_NAME}") if p.is_file())
    except OSError:
        return []


def newest_plan(project: Path) -> Path:
    """Return the plan that was written last, or raise a `UsageError`."""
    plans = plans_of(project)
    if not plans:
        raise UsageError(
            f"There is no plan in {CHAINS}/ yet.", next_step=f"Make a plan: {_MAKE_PLAN}"
        )
    return max(plans, key=lambda path: (path.stat().st_mtime_ns, path.parent.name))


def find_plan_or_newest(project: Path, name: str | None) -> Path:
    """Return the plan of this name, or the newest; an unknown name is a `UsageError`."""
    plan = newest_plan(project) if name is None else find_plan(project, name)
    if plan is None:
        raise no_such_plan(project, name or "")
    return plan


def plan_or_request(words: Sequence[str], project: Path) -> PlanOrRequest:
    """Read the argument of `execute`; neither a plan nor a request is a `UsageError`."""
    if not words:
        return PlanOrRequest(plan=newest_plan(project))
    if len(words) > 1:
        first = find_plan(project, words[0])
        step = "Give one plan." if first else f"Put the request in quotes: {_RUN_REQUEST}"
        raise UsageError(f"Unexpected argument {words[1]!r}.", next_step=step)
    (word,) = words
    plan = find_plan(project, word)
    if plan is not None:
        return PlanOrRequest(plan=plan)
    if word == "-" or word.startswith("@") or any(map(str.isspace, word)):
        return PlanOrRequest(request=read_request([word], project))
    raise no_such_plan(project, word)


def split_tasks(
    words: Sequence[str], only: Sequence[str], project: Path
) -> tuple[list[str], list[str]]:
    """Separate task ids from the plan; return the other words, and each task id once.

    For `--only a b PLAN` the parser yields `a` as the option and `b PLAN` as arguments.
    """
    tasks = [id for value in only for id in re.split(r"[\s,]+", value) if id]
    rest: list[str] = []
    for word in words:
        ids = [id for id in word.split(",") if id]
        # A word that names an existing plan is never taken for a task.
        are_tasks = all(re.fullmatch(_TASK, id) for id in ids) and find_plan(project, word) is None
        if only and are_tasks:
            tasks += ids
        else:
            rest.append(word)
    return rest, list(dict.fromkeys(tasks))


def minutes(text: str) -> float:
    """Return the minutes of `30`, `30m`, `2h`, `90s` or `1h30m`, or raise a `UsageError`."""
    found = re.fullmatch(_TIME, text.strip().lower().replace(" ", ""))
    parts = (
        {unit: float(value) for unit, value in found.groupdict().items() if value} if found else {}
    )
    total = parts.get("h", 0) * 60 + parts.get("m", 0) + parts.get("s", 0) / 60
    # The upper limit keeps the deadline within the range of a date.
    if not 0 < total < 1e7:
        raise UsageError(
            f"--time-limit {text[:80]!r} is not a time.",
            next_step="Write minutes: 30, 30m, 2h or 1h30m.",
        )
    return total


def amount(text: str) -> "Decimal":
    """Return an amount of money such as `2` or `0.50`, or raise a `UsageError`."""
    from decimal import Decimal

    found = Decimal(text) if re.fullmatch(_AMOUNT, text) else Decimal(0)
    if not 0 < found <= 100_000:
        raise UsageError(
            f"--max-cost {text!r} is not an amount of money.",
            next_step="Write at most 100000 with at most six decimals, such as 2 or 0.50.",
        )
    return found


def display_path(path: Path, project: Path) -> str:
    """Return a path as it is displayed and stored: relative inside the project, always UTF-8."""
    short = path.relative_to(project) if path.is_relative_to(project) else path
    # File names may hold bytes that are not UTF-8; the store and JSON cannot.
    return os.fsencode(short.as_posix()).decode("utf-8", "backslashreplace")


def no_such_plan(project: Path, name: str) -> UsageError:
    """Return the error for an unknown plan, with the nearest known one."""
    plans = {p.parent.name: p for p in plans_of(project)}
    paths = [display_path(p, project) for p in plans.values()]
    near = nearest(name, [*plans, *paths, *_top_level_documents(project)])
    if near:
        step = f"Did you mean {near}?"
    elif plans:
        step = f"Plans: {', '.join(list(plans)[:5])}. A request has spaces: {_RUN_REQUEST}"
    else:
        step = f"A request has spaces: {_RUN_REQUEST}"
    return UsageError(f"There is no plan {name[:200]!r}.", next_step=step)


def _top_level_documents(project: Path) -> list[str]:
    """Return the names of files at the top of the project that may be plans."""
    try:
        return [p.name for p in project.iterdir() if p.suffix in (".md", ".json")][:1000]
    except OSError:
        return []


def _exists(path: Path, *, directory: bool) -> bool:
    try:
        return path.is_dir() if directory else path.exists() and not path.is_dir()
    except (OSError, ValueError):  # a whole request is too long for a path
        return False


def read_value() -> str:
    """Return a value from standard input, or raise a `UsageError` for several lines."""
    # A terminal ends with the line, a pipe with its end: a second line there is a part of the value.
    text = (sys.stdin.readline() if sys.stdin.isatty() else sys.stdin.read(_MAX_VALUE)).strip()
    if "\n" in text or "\r" in text:
        raise UsageError(
            "The value on standard input has a line break.",
            next_step="Write it as one line; nothing was changed.",
        )
    return text


def _read_stdin() -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  closed before the process began
        return b""
    return sys.stdin.buffer.read(4 * MAX_REQUEST_CHARS + 1)


def _read_file(project: Path, name: str) -> bytes:
    try:
        with (project / name).open("rb") as file:
            # A UTF-8 character has at most four bytes; one byte more proves that it is too long.
            return file.read(4 * MAX_REQUEST_CHARS + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"The request file {name[:200]!r} cannot be read: {reason}.",
            next_step="Name an existing file, or write the request itself in quotes.",
        ) from None


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        # Everything before the error is valid UTF-8, so its characters can be counted.
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8")) + 1
        raise PlanError(
            f"The request is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}.",
            at=Location(file=name, line=line, column=column),
            code="file-not-utf8",
            next_step="Save it as UTF-8.",
        ) from None
