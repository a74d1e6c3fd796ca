"""Ignore rules as text: the rules of a whole tree become one list for git."""

from collections.abc import Iterable, Sequence

# Caches, environments and secrets. Rules of the lowest rank: the user's own rules win.
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

TOOL_FOLDERS = frozenset(
    rule.rstrip("/") for rule in DEFAULTS if rule.endswith("/") and rule != ".mimir/"
)
"""Folders of tools, at any depth."""

_SPECIAL = frozenset("\\*?[")


def flatten_rules(files: Iterable[tuple[str, str]]) -> list[str]:
    """Join the rules of (directory, text) files into one list; later lines win."""
    rules: list[str] = []
    for directory, text in sorted(files, key=lambda item: (item[0].count("/"), item[0])):
        # A rule cannot name a directory with a line end.
        if "\n" not in directory:
            rules += lift_rules_to_root(parse_rules(text), directory)
    return rules


def parse_rules(text: str) -> list[str]:
    """Return the rules of an ignore file, without comments and empty lines."""
    found: list[str] = []
    for line in text.removeprefix("\ufeff").split("\n"):
        whole = line.removesuffix("\r")
        rule = whole.rstrip(" ")
        if rule.endswith("\\") and rule != whole:  # The backslash protects one space.
            rule += " "
        if rule and not rule.startswith("#"):
            found.append(rule)
    return found


def lift_rules_to_root(rules: Iterable[str], directory: str) -> list[str]:
    """Rewrite rules of a file in `directory` as rules of a file at the top."""
    if not directory:
        return list(rules)
    escaped = "/" + "".join(f"\\{c}" if c in _SPECIAL else c for c in directory)
    return [_prefix_rule(escaped, rule) for rule in rules]


def push_rules_down(rules: Iterable[str], prefix: str) -> list[str]:
    """Rewrite rules of a file at the top as rules of a file in `prefix`; drop others."""
    if not prefix:
        return list(rules)
    return [
        moved for rule in rules if (moved := _push_rule_down(rule, prefix.split("/"))) is not None
    ]


def _push_rule_down(rule: str, prefix: Sequence[str]) -> str | None:
    mark, pattern = _split(rule)
    if not _is_anchored(pattern) or pattern.startswith("**/"):
        return rule
    parts = pattern.removeprefix("/").split("/")
    for number, name in enumerate(prefix):
        if parts[number : number + 1] == ["**"]:
            return mark + "/".join(("**", *parts[number + 1 :]))
        # Anchored rules nearly always name directories literally; a pattern is not evaluated.
        if parts[number : number + 1] != [name]:
            return None
    rest = [part for part in parts[len(prefix) :] if part]
    return f"{mark}/{'/'.join(parts[len(prefix) :])}" if rest else None


def _prefix_rule(directory: str, rule: str) -> str:
    mark, pattern = _split(rule)
    if _is_anchored(pattern):
        return f"{mark}{directory}/{pattern.removeprefix('/')}"
    return f"{mark}{directory}/**/{pattern}"


def _split(rule: str) -> tuple[str, str]:
    # An escaped first character belongs to the name.
    if rule.startswith("!"):
        return "!", rule[1:]
    return "", rule[1:] if rule.startswith(("\\!", "\\#")) else rule


def _is_anchored(pattern: str) -> bool:
    return "/" in pattern.rstrip("/")
