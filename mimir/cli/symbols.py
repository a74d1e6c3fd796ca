"""Symbols of boards and tables, for Unicode and for ASCII terminals."""

from mimir.domain.value_class import value_class


@value_class
class Symbols:
    """Symbols for one kind of terminal; each is one column wide, the branches are two."""

    passed: str
    failed: str
    running: str
    waiting: str
    ready: str
    blocked: str
    branch: str
    last: str
    dot: str
    arrow: str
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
    arrow="→",
    cut="…",
)
# A stream in the C locale cannot encode the others.
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
    arrow=">",
    cut="~",
)


def for_encoding(encoding: str | None) -> Symbols:
    """Return the symbols that a stream of this encoding can carry."""
    name = (encoding or "ascii").lower().replace("-", "").replace("_", "")
    return UNICODE if name.startswith("utf") else ASCII
