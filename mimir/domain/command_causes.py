"""Causes of failed commands, by their output, with the setting or step that helps. Pure."""

import re
from collections.abc import Sequence
from itertools import islice

from mimir.domain.value_class import value_class


@value_class
class CommandCause:
    """A cause that the output of a command shows."""

    name: str
    pattern: re.Pattern[str]
    advice: str


CAUSES = (
    CommandCause(
        name="no network",
        pattern=re.compile(
            r"Temporary failure in name resolution|Could not resolve (?:host|proxy)|Name or service not known"
            r"|getaddrinfo (?:EAI_AGAIN|ENOTFOUND)|Network is unreachable|ENETUNREACH|ENOTCACHED"
            r"|dial tcp: lookup|failed to lookup address|module lookup disabled|[Nn]etwork (?:connectivity i|wa)s disabled"
            r"|offline mode|--offline was specified|UnknownHostException"
        ),
        advice="Commands have no network. Install or download what is missing before the run; "
        "sandbox.share shows commands a further folder.",
    ),
    CommandCause(
        name="read-only file system",
        pattern=re.compile(r"Read-only file system|\bEROFS\b"),
        advice="This path is read-only for commands. Write to the workspace or to /tmp, or name the folder in sandbox.share.",
    ),
    CommandCause(
        name="snapshot not stored",
        # vitest reports a new snapshot as a mismatch without a difference.
        pattern=re.compile(r"New snapshot was not written|Snapshot `[^`\n]+` mismatched\n\s*❯"),
        advice="Commands run with CI=1, so test runners store no new snapshot. Store it with the update option "
        "(`vitest run -u FILE`, `jest --ci=false FILE`), and deliver the snapshot file with the test.",
    ),
    CommandCause(
        name="coverage below its threshold",
        pattern=re.compile(
            r"Required test coverage of \S+ not reached|[Cc]overage (?:threshold )?for \w+ \(\S+\) (?:does not meet|not met)"
        ),
        advice="The tests that ran cover too little for a threshold of the project. A check of only some tests needs an option "
        "that leaves the coverage out, such as --no-cov or --coverage=false.",
    ),
    CommandCause(
        name="out of memory",
        pattern=re.compile(
            r"Cannot allocate memory|^MemoryError\b|heap out of memory|OutOfMemoryError|No space left on device|\bENOSPC\b",
            re.MULTILINE,
        ),
        advice="The command used up its memory, which includes /tmp and shared folders. Work on less at once, "
        "or raise sandbox.memory_mb.",
    ),
)
_STOPS = {
    "timeout": "The command did not end within its time limit. Raise timeout_seconds, or run less at once.",
    "memory": CAUSES[-1].advice,
    "processes": "The command started too many processes. Start fewer at once, or raise sandbox.processes.",
}
HIDDEN_PATH = "exists on this machine, but commands do not see it."
_NOT_FOUND = re.compile(
    r"no such file|NoSuchFile|\bENOENT\b|not found|does not exist", re.IGNORECASE
)
_SYSTEM_PATH = re.compile(r"(?<![\w./-])/(?:usr|etc|opt|srv|var/lib)/[^\s'\"`:,;()<>]+")
_MAX_PATHS = 20
_MISSING_MODULE = re.compile(
    r"No module named '?(?P<python>[\w.]+)|cannot import name '(?P<name>\w+)' from '(?P<package>[\w.]+)"
    r"|Cannot find module '(?P<node>[^'\n]+)'|Cannot find package '(?P<go>[^'\n]+)'"
)
_NODE_PACKAGE = re.compile(r"(?:@[\w.-]+/)?[\w-][\w.-]*(?:/[\w./-]+)?")
_ENDING = re.compile(r"\.(?:[cm]?[jt]sx?|json|node)$")
_MAX_MODULES = 20


def explain_failure(
    output: str, *, stop_reason: str = "", ignored: Sequence[str] = (), hidden: Sequence[str] = ()
) -> str:
    """Return the cause of a failed command and a remedy; empty: none is known.

    `ignored` are the paths of the project that git ignores; a directory ends with `/`. `hidden` are the paths of `missing_paths`
    that exist on this machine.
    """
    if stop_reason in _STOPS:
        return _STOPS[stop_reason]
    found = next((cause.advice for cause in CAUSES if cause.pattern.search(output)), "")
    return found or _explain_missing_module(output, ignored) or _explain_hidden_path(hidden)


def missing_paths(output: str) -> list[str]:
    """Return the system paths that the output of a command reports as missing."""
    lines = (line for line in output.splitlines() if _NOT_FOUND.search(line))
    found = (match[0].rstrip(".") for line in lines for match in _SYSTEM_PATH.finditer(line))
    return list(dict.fromkeys(found))[:_MAX_PATHS]


def missing_packages(output: str) -> tuple[list[str], list[str]]:
    """Return the modules of Python and the packages of Node that are not installed."""
    python: dict[str, None] = {}
    node: dict[str, None] = {}
    for match in islice(_MISSING_MODULE.finditer(output), _MAX_MODULES):
        named = match["node"] or match["go"] or ""
        if match["python"] and "." not in match["python"]:
            python[match["python"]] = None
        elif named and _NODE_PACKAGE.fullmatch(named) and not _ENDING.search(named):
            parts = named.split("/")
            node["/".join(parts[: 2 if named[0] == "@" else 1])] = None
    return list(python), list(node)


def _explain_hidden_path(hidden: Sequence[str]) -> str:
    if not hidden:
        return ""
    return (
        f"The path {hidden[0]!r} {HIDDEN_PATH} If the program needs it, name it in your own settings: "
        f'sandbox.share = ["{hidden[0]}"].'
    )


def _explain_missing_module(output: str, ignored: Sequence[str]) -> str:
    for match in islice(_MISSING_MODULE.finditer(output), _MAX_MODULES):
        package = f"{match['package']}.{match['name']}" if match["name"] else ""
        module = match["python"] or package or match["node"] or match["go"]
        bare = _ENDING.sub("", module)
        words = [word for word in re.split(r"[./]+", bare) if word not in ("", "workspace")]
        path = next((path for path in ignored if _is_module(path, words)), "")
        if path:
            return (
                f"Module {module!r} is missing, because git ignores {path!r} and commands do not see it. "
                f'If the code needs it, name it in your own settings: sandbox.share = ["{path.rstrip("/")}"].'
            )
    return ""


def _is_module(path: str, words: Sequence[str]) -> bool:
    """Return whether an ignored path holds the module with these words."""
    stem = path.rstrip("/").rpartition("/")[2].partition(".")[0]
    # `a.b` may be `a/b.py`, a folder `a`, or the member `b` of an ignored folder.
    return bool(words and stem) and stem in (
        words[-1],
        words[-2] if path.endswith("/") and words[1:] else "",
    )
