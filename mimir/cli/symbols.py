"""The signs that pictures and tables are made of, for terminals that can show them and for those that cannot."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """Signs for one kind of terminal; each is one column wide, but the branches, which are two."""

    passed: str
    failed: str
    running: str
    waiting: str
    ready: str
    blocked: str
    branch: str
    last: str
    dot: str
    cut: str


UNICODE = Symbols(
    passed="✔",
    failed="✘",
    running="●",
    waiting="○",
    ready="◔",
    blocked="⊘",
    branch="├─",
    last="└─",
    dot="·",
    cut="…",
)
ASCII = Symbols(
    passed="+",
    failed="x",
    running="*",
    waiting=".",
    ready="o",
    blocked="#",
    branch="|-",
    last="`-",
    dot="-",
    cut="~",
)


def for_encoding(encoding: str | None) -> Symbols:
    """Return the signs that a stream of this encoding can carry."""
    name = (encoding or "ascii").lower().replace("-", "").replace("_", "")
    return UNICODE if name.startswith("utf") else ASCII
