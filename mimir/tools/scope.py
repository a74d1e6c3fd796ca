"""Path scope of an agent: the paths of a workspace that it may see and write.

These are rules over names; `workspace.paths` refuses paths that lead out. A path is checked in its one normal form, so `./chains//x`
and `chains/x` are the same file.
"""

import unicodedata
from collections.abc import Callable, Collection

from mimir.domain.globs import matches
from mimir.domain.quoted_text import list_names, quote_text
from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.tools.calls.failures import CallDenied

MAX_PATH_BYTES = 1024
# The limit of common file systems, so that a long name is explained to the model.
MAX_NAME_BYTES = 255
ENGINE_NAMES = frozenset({".git"})
"""Hidden at any depth: git owns these files, and they may hold credentials."""
WORKSPACE = "/workspace"
"""The path of the workspace for commands; models copy it into paths."""


@value_class
class PathScope:
    """The paths that one agent may see and write."""

    files: Collection[str] = ()
    """Globs that the agent may write; empty: any."""
    forbidden: Collection[str] = ()
    """Globs that no agent may write."""
    protected: Collection[str] = ()
    """Globs of protected files."""
    hidden: Collection[str] = ()
    """Top-level names that the agent does not see, in any case."""
    allow_hidden: Collection[str] = ()
    """Exact paths below hidden names that its task lists as context."""
    refuse: Callable[[str], str] | None = None
    """Returns why a path is outside of the write scope; empty: inside. None: no rule."""

    def __post_init__(self) -> None:
        # A plan may write `./a//b`, and a file system may ignore case.
        object.__setattr__(self, "hidden", frozenset(map(_normalise, self.hidden)))
        allowed = frozenset("/".join(_parts(path)) for path in self.allow_hidden)
        object.__setattr__(self, "allow_hidden", allowed)

    def sees(self, path: str) -> bool:
        """Return whether this agent sees a path in normal form."""
        parts = [_normalise(part) for part in path.split("/")]
        if ENGINE_NAMES.intersection(parts):
            return False
        return parts[0] not in self.hidden or path in self.allow_hidden

    def require_visible(self, path: str) -> None:
        """Require that the agent sees a path in normal form, or raise `CallDenied`."""
        if not self.sees(path):
            raise CallDenied(
                f"{quote_text(path)} is not part of the workspace of this task.",
                next_step="Use list_files to see what is there, and work without it.",
            )

    def require_writable(self, path: str) -> None:
        """Require that a path in normal form may be written, or raise `CallDenied`."""
        parts = [_normalise(part) for part in path.split("/")]
        engine = ENGINE_NAMES.intersection(parts) or parts[0] in self.hidden
        # Also in normalised form, because a file system may ignore case.
        if engine or matches(path, self.forbidden) or matches(_normalise(path), self.forbidden):
            raise CallDenied(
                f"{quote_text(path)} belongs to the engine; no task may change it.",
                next_step="Leave it as it is.",
            )
        if matches(path, self.protected):
            raise CallDenied(
                f"{quote_text(path)} is protected: a check of this task stands on it, and it is restored before the check runs.",
                next_step="Make the check pass by changing the code that it tests.",
            )
        reason = self.refuse(path) if self.refuse else ""
        # The rule knows which other files the named ones bring with them.
        is_named = matches(path, self.files) or (self.refuse and not reason)
        if self.files and not is_named:
            raise CallDenied(
                f"{quote_text(path)} is not among the files of this task ({list_names(self.files)}).",
                next_step="Make the change in one of those, or say in your answer why it is needed.",
            )
        if reason:
            raise CallDenied(
                f"{quote_text(path)} is outside of the write scope of this task: it {reason}",
                next_step="Work without this change, or say in your answer that `Files` must name the file.",
            )


def normalise_path(path: str) -> str:
    """Return the normal form of a path: `a/b`, relative, without `.` and empty parts.

    Raises:
        CallDenied: The path is absolute or contains `..`.
        ToolError: The path is empty, too long, or contains a NUL.
    """
    if "\0" in path:
        raise ToolError("A path cannot hold a NUL character.", next_step="Leave it out.")
    path = relative_path(path)
    parts = _parts(path)
    if path.startswith("/") or parts[:1] == ["~"]:
        raise CallDenied(
            f"The path {quote_text(path)} is not relative to the workspace.",
            next_step="Give paths as list_files shows them.",
        )
    if ".." in parts:
        raise CallDenied(
            f"The path {quote_text(path)} climbs with '..', which is not allowed.",
            next_step="Give paths as list_files shows them.",
        )
    if not parts:
        raise ToolError("The path is empty.", next_step="Name a file, such as 'src/main.py'.")
    whole = "/".join(parts)
    longest = max(len(part.encode()) for part in parts)
    if longest > MAX_NAME_BYTES or len(whole.encode()) > MAX_PATH_BYTES:
        raise ToolError(
            f"The path {quote_text(path)} is too long.", next_step="Choose shorter names."
        )
    return whole


def relative_path(path: str) -> str:
    """Return a path or glob without the directory that commands see as the workspace."""
    return "." if path == WORKSPACE else path.removeprefix(f"{WORKSPACE}/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _normalise(name: str) -> str:
    # Some file systems treat such names as the same name.
    return unicodedata.normalize("NFKC", name).casefold()


EVERY_PATH = PathScope()
