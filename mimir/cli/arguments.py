"""What a person wrote behind a command: a request, a plan, tasks, a time. Each is read here, or refused with the nearest that there is."""

import difflib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from mimir.errors import Location, PlanError, UsageError

PLAN_NAME = "chain-output.md"
CHAINS = "chains"
MAX_REQUEST_CHARS = 1_000_000
_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TIME = re.compile(
    r"(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)(?:m|$))?(?:(?P<s>\d+(?:\.\d+)?)s)?"
)
_AMOUNT = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_TO_WRITE = 'mimir execute "what you want"'


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrRequest:
    """What the argument of `execute` names: a plan's file, or a request."""

    plan: Path | None = None
    request: str = ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that looks most like `word`; empty: none does."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return found[0] if found else ""


def read_request(words: Sequence[str], project: Path) -> str:
    """Return the request that `words` say: text, `-` for the standard input, `@file`.

    Raises:
        UsageError: There is none, the file is not there, or it is too long.
        PlanError: The file or the input is not UTF-8.
    """
    said = " ".join(words)
    if said == "-":
        text = _decoded(_from_stdin(), "the standard input")
    elif said.startswith("@"):
        text = _decoded(_from_file(project, said[1:]), said[1:])
    else:
        text = _argument(said)
    if not text.strip():
        raise UsageError("The request is empty.", next_step='Write it: mimir chain "what you want"')
    if len(text) > MAX_REQUEST_CHARS:
        raise UsageError(f"The request is longer than {MAX_REQUEST_CHARS} characters.")
    return text


def find_plan(project: Path, name: str) -> Path | None:
    """Return the plan's file that `name` means: a path, a folder with a plan in it, or a slug of `chains/`."""
    if not name:
        return None
    for path in (project / name, project / CHAINS / name):
        if _is(path, directory=True):
            path = path / PLAN_NAME
        if _is(path, directory=False):
            return path
    return None


def newest_plan(project: Path) -> Path:
    """Return the plan that was written last.

    Raises:
        UsageError: There is none.
    """
    plans = plans_of(project)
    if not plans:
        raise UsageError(
            f"There is no plan in {CHAINS}/ yet.", next_step='Make one: mimir chain "what you want"'
        )
    return max(plans, key=lambda path: (path.stat().st_mtime_ns, path.parent.name))


def plans_of(project: Path) -> list[Path]:
    """Return the plans of the project, by slug."""
    try:
        return sorted(p for p in (project / CHAINS).glob(f"*/{PLAN_NAME}") if p.is_file())
    except OSError:
        return []


def the_plan(project: Path, name: str | None) -> Path:
    """Return the plan of this name, or the newest.

    Raises:
        UsageError: There is none; the nearest is named.
    """
    if name is None:
        return newest_plan(project)
    found = find_plan(project, name)
    if found is None:
        raise no_such_plan(project, name)
    return found


def plan_or_request(words: Sequence[str], project: Path) -> PlanOrRequest:
    """Read the argument of `execute`.

    Raises:
        UsageError: It is neither a plan nor a request; the nearest plan is named.
    """
    if not words:
        return PlanOrRequest(plan=newest_plan(project))
    if len(words) > 1:
        first = find_plan(project, words[0])
        step = "Give one plan." if first else f"Put a request in quotes: {_TO_WRITE}"
        raise UsageError(f"There is one argument too many: {words[1]!r}.", next_step=step)
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
    """Tell the tasks behind `--only` from the plan: the shell hands over `--only a b PLAN` as `b PLAN` and `a`.

    Returns:
        What is left of `words`, and the tasks' ids in order, each once.
    """
    named = [id for value in only for id in re.split(r"[\s,]+", value) if id]
    rest: list[str] = []
    for word in words:
        ids = [id for id in word.split(",") if id]
        are_tasks = all(map(_TASK.fullmatch, ids)) and find_plan(project, word) is None
        if only and are_tasks:
            named += ids
        else:
            rest.append(word)
    return rest, list(dict.fromkeys(named))


def minutes(text: str) -> float:
    """Read a time limit: `30` and `30m` are minutes, `2h`, `90s` and `1h30m` are what they say.

    Raises:
        UsageError: It is no time, or none at all.
    """
    found = _TIME.fullmatch(text.strip().lower().replace(" ", ""))
    parts = (
        {unit: float(value) for unit, value in found.groupdict().items() if value} if found else {}
    )
    total = parts.get("h", 0) * 60 + parts.get("m", 0) + parts.get("s", 0) / 60
    if not 0 < total < 1e7:
        raise UsageError(
            f"--time-limit {text!r} is no time.", next_step="Write minutes: 30, 30m, 2h or 1h30m."
        )
    return total


def amount(text: str) -> Decimal:
    """Read an amount of money: `2` or `0.50`, in the currency of the prices.

    Raises:
        UsageError: It is none, nothing, or too much.
    """
    found = Decimal(text) if _AMOUNT.fullmatch(text) else Decimal(0)
    if not 0 < found <= 100_000:
        raise UsageError(
            f"--max-cost {text!r} is no amount of money.",
            next_step="Write it with a dot and at most six decimals: 2 or 0.50; at most 100000.",
        )
    return found


def display_path(path: Path, project: Path) -> str:
    """Return a path as people and the store see it: relative to the project where it is in it, bytes that are no UTF-8 escaped."""
    try:
        short = path.relative_to(project)
    except ValueError:
        short = path
    return os.fsencode(short.as_posix()).decode("utf-8", "backslashreplace")


def no_such_plan(project: Path, name: str) -> UsageError:
    """Say that there is no such plan, and which is nearest."""
    plans = {p.parent.name: p for p in plans_of(project)}
    paths = [display_path(p, project) for p in plans.values()]
    near = nearest(name, [*plans, *paths, *_loose(project)])
    if near:
        step = f"Did you mean {near}?"
    elif plans:
        step = f"Plans: {', '.join(list(plans)[:5])}. A request has spaces: {_TO_WRITE}"
    else:
        step = f"A request has spaces: {_TO_WRITE}"
    return UsageError(f"There is no plan {name[:200]!r}.", next_step=step)


def _loose(project: Path) -> list[str]:
    """Return files beside the project's own folders that may be plans."""
    try:
        return [p.name for p in project.iterdir() if p.suffix in (".md", ".json")][:1000]
    except OSError:
        return []


def _is(path: Path, *, directory: bool) -> bool:
    """Tell what is there; a whole request taken for a path is too long for the file system, and that is no error."""
    try:
        return path.is_dir() if directory else path.exists() and not path.is_dir()
    except (OSError, ValueError):
        return False


def _from_stdin() -> bytes:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  closed before the process began
        return b""
    return sys.stdin.buffer.read(4 * MAX_REQUEST_CHARS + 1)


def _from_file(project: Path, name: str) -> bytes:
    try:
        with (project / name).open("rb") as file:
            return file.read(4 * MAX_REQUEST_CHARS + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"The request's file {name[:200]!r} cannot be read: {why}.",
            next_step="Name a file that is there, or write the request itself in quotes.",
        ) from None


def _argument(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError("The request is not UTF-8 text.", next_step="Write it again.") from None
    return text


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8")) + 1
        raise PlanError(
            f"This is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}.",
            at=Location(file=name, line=line, column=column),
            code="file-not-utf8",
            next_step="Save it as UTF-8.",
        ) from None
