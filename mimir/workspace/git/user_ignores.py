"""Which untracked files are passed over: ignore rules as text, from the base commit and the person's own files.

A worker can write a `.gitignore`, so git must not read those in a workspace. Here the rules of a whole tree
become one list that git is given by name. Pure: text in, text out.
"""

from collections.abc import Iterable, Sequence

DEFAULTS = (
    ".mimir/",
    ".env",
    ".venv/",
    "venv/",
    "node_modules/",
    "__pycache__/",
    "*.py[co]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".coverage",
)
"""Never wanted in a result, and secrets: rules of the lowest rank, so that a person's own rule beats them."""

_SPECIAL = frozenset("\\*?[")


def flatten_rules(files: Iterable[tuple[str, str]]) -> list[str]:
    """Make one list of the rules in many `.gitignore` files; later lines beat earlier ones.

    Args:
        files: (directory, text) with "" for the top; a directory whose name holds a line end is left out.
    """
    rules: list[str] = []
    for directory, text in sorted(files, key=lambda item: (item[0].count("/"), item[0])):
        if "\n" not in directory:
            rules += lift_rules_to_root(lines(text), directory)
    return rules


def lines(text: str) -> list[str]:
    """Return the rules of an ignore file, without comments and empty lines."""
    found: list[str] = []
    for line in text.removeprefix("\ufeff").split("\n"):
        rule = _without_trailing_space(line.removesuffix("\r"))
        if rule and not rule.startswith("#"):
            found.append(rule)
    return found


def lift_rules_to_root(rules: Iterable[str], directory: str) -> list[str]:
    """Rewrite rules of a file in `directory` as rules of a file at the top."""
    if not directory:
        return list(rules)
    escaped = "/" + "".join(f"\\{c}" if c in _SPECIAL else c for c in directory)
    return [_joined(escaped, rule) for rule in rules]


def push_rules_down(rules: Iterable[str], prefix: str) -> list[str]:
    """Rewrite rules of a file at the top as rules of a file in the directory `prefix`; others are dropped.

    Args:
        rules: As `lines` gives them.
        prefix: Relative path of the directory, without a trailing slash; "": the top itself.
    """
    if not prefix:
        return list(rules)
    return [moved for rule in rules if (moved := _raised_one(rule, prefix.split("/"))) is not None]


def _raised_one(rule: str, prefix: Sequence[str]) -> str | None:
    mark, pattern = _split(rule)
    if not _is_anchored(pattern) or pattern.startswith("**/"):
        return rule
    parts = pattern.removeprefix("/").split("/")
    for number, name in enumerate(prefix):
        if parts[number : number + 1] == ["**"]:
            return mark + "/".join(("**", *parts[number + 1 :]))
        # Directory names in anchored rules are nearly always literal; others cannot be told apart safely.
        if parts[number : number + 1] != [name]:
            return None
    rest = [part for part in parts[len(prefix) :] if part]
    return f"{mark}/{'/'.join(parts[len(prefix) :])}" if rest else None


def _joined(directory: str, rule: str) -> str:
    mark, pattern = _split(rule)
    if _is_anchored(pattern):
        return f"{mark}{directory}/{pattern.removeprefix('/')}"
    return f"{mark}{directory}/**/{pattern}"


def _split(rule: str) -> tuple[str, str]:
    """Take the negation off; an escaped first character is one of the name."""
    if rule.startswith("!"):
        return "!", rule[1:]
    return "", rule[1:] if rule.startswith(("\\!", "\\#")) else rule


def _is_anchored(pattern: str) -> bool:
    return "/" in pattern.rstrip("/")


def _without_trailing_space(line: str) -> str:
    """Drop trailing spaces, but keep one that a backslash protects."""
    stripped = line.rstrip(" ")
    if stripped.endswith("\\") and len(stripped) < len(line):
        return stripped + " "
    return stripped
