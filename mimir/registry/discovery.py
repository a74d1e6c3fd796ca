"""Search for agent files in the known locations; links are never followed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mimir.domain.agent_definition import AgentLocation
from mimir.domain.finding import Finding
from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.registry.file_kinds import CONFIGURATIONS, PROMPT, SKILL, FileKind, classify
from mimir.registry.findings import make_agent_finding
from mimir.registry.formats.agent_reader import MAX_BYTES, AgentFile
from mimir.workspace.paths import DirectoryTree

MAX_FILES = 5_000
MAX_LEVELS = 5
"""Of folders below a location."""
CHECK_LEVELS = 10
"""Of folders below a directory that the user names."""

PROJECT_PLACES = (
    ".agents/agents", ".claude/agents", ".github/agents", ".github/chatmodes", ".opencode/agent",
    ".opencode/agents", ".opencode/skill", ".opencode/skills", ".agents/skills", ".claude/skills",
)  # fmt: skip
HOME_PLACES = (".claude/agents", ".agents/skills", ".claude/skills")
CONFIG_PLACES = (
    "mimir/agents", "opencode/agent", "opencode/agents", "opencode/skill", "opencode/skills",
)  # fmt: skip
"""Below the user's directory of settings, such as `~/.config`."""


@value_class
class SearchPlace:
    """A directory that is searched."""

    root: Path
    """Links above it are the user's own; below it none is followed."""
    place: str
    """Folder below `root`; empty: `root` itself."""
    location: AgentLocation
    levels: int = MAX_LEVELS
    is_shown_relative: bool = False
    """Whether paths are shown relative to `root`."""


def find_agent_files(places: Sequence[SearchPlace], *, skills: bool = False) -> Iterator[AgentFile]:
    """Yield the agent files of some places, in their order, each place sorted by path.

    Args:
        places: Searched in this order.
        skills: Whether skills, which are no agents, are yielded too.
    """
    left = MAX_FILES
    for place in places:
        for file in _find_in(place):
            if not (file.is_agent or skills):
                continue
            if left == 0:
                return
            left -= 1
            yield file


def read_named_file(folder: Path, name: str) -> AgentFile:
    """Return the agent file that the user named; one of another kind has an error finding."""
    tree = DirectoryTree(folder)
    siblings = tree.walk("*")
    kind = classify(f"{folder.as_posix()}/{name}", siblings)
    if kind is not None:
        return _open_file(tree, name, kind, "project", siblings, name)
    finding = make_agent_finding(
        "file-unreadable",
        f"{name} is not an agent file.",
        suggestion="Name a Markdown file, or a folder with config.yaml and prompt.md.",
    )
    return AgentFile(
        path=name, format="claude", location="project", parts=(), name=name, findings=(finding,)
    )


def _find_in(place: SearchPlace) -> Iterator[AgentFile]:
    tree = DirectoryTree(place.root)
    folders: dict[str, list[str]] = defaultdict(list)
    glob = f"{place.place}/**" if place.place else "**"
    for path in tree.walk(glob) if tree.root.is_dir() else ():
        inner = path.removeprefix(f"{place.place}/") if place.place else path
        if inner.count("/") <= place.levels:
            folders[path.rpartition("/")[0]].append(path.rpartition("/")[2])
    for folder, names in sorted(folders.items()):
        for name in sorted(names):
            path = f"{folder}/{name}" if folder else name
            kind = classify(f"{place.root.as_posix()}/{path}", names)
            if kind is None or not _belongs(place, path, kind, tree):
                continue
            # The configuration file represents the whole folder.
            if kind.format == "folder" and name == PROMPT and set(CONFIGURATIONS) & set(names):
                continue
            shown = path if place.is_shown_relative else f"{place.root}/{path}"
            yield _open_file(tree, path, kind, place.location, names, shown)


def _belongs(place: SearchPlace, path: str, kind: FileKind, tree: DirectoryTree) -> bool:
    """Return whether a file of a place is a definition, and not a document next to it."""
    name = path.rpartition("/")[2]
    base = PurePosixPath(place.root.as_posix(), place.place)
    top = base.name
    if top in ("skill", "skills"):
        return name == SKILL
    if top == "chatmodes":
        return kind.may_lack_keys
    if top in ("agent", "agents"):
        # GitHub and opencode read the folder itself only.
        is_flat = base.parent.name in (".github", ".opencode", "opencode")
        inner = path.removeprefix(f"{place.place}/")
        return name != SKILL and not (is_flat and "/" in inner)
    return kind.format != "claude" or (not kind.is_code and _has_agent_keys(tree, path))


def _has_agent_keys(tree: DirectoryTree, path: str) -> bool:
    """Return whether a document begins with front matter that names an agent, not a workflow."""
    try:
        head = tree.read(path, max_bytes=65_536).replace(b"\r\n", b"\n")
    except ToolError:
        return False
    front = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n---")[0]
    has_keys = b"\nname:" in front and b"\ndescription:" in front
    return front.startswith(b"---") and has_keys and b"\non:" not in front


def _open_file(
    tree: DirectoryTree,
    path: str,
    kind: FileKind,
    location: AgentLocation,
    siblings: Sequence[str],
    shown: str,
) -> AgentFile:
    folder, _, name = path.rpartition("/")
    wanted, findings = [name], list[Finding]()
    if kind.format == "folder":
        config = next((one for one in CONFIGURATIONS if one in (name, *siblings)), None)
        wanted = [config, PROMPT] if config else [PROMPT]
        shown = shown.rpartition("/")[0]
        if "runner.py" in siblings:
            message = "runner.py is never run: mimir runs no code of a definition."
            findings.append(make_agent_finding("refused-key", message))
    if kind.is_code:
        message = f"{name} is code; mimir runs no code of an agent file."
        hint = "Write the agent as a Markdown file."
        findings.append(make_agent_finding("code-agent", message, suggestion=hint))
        wanted = []
    parts: dict[str, bytes] = {}
    for one in wanted:
        try:
            parts[one] = _read_bounded(tree, f"{folder}/{one}" if folder else one)
        except ToolError as error:
            hint = "Make it a regular file of at most 1 MiB that you may read, with no link in its path."
            findings.append(make_agent_finding("file-unreadable", str(error), suggestion=hint))
    return AgentFile(
        path=shown,
        format=kind.format,
        location=location,
        parts=tuple(parts.items()),
        name=kind.name,
        is_agent=kind.is_agent,
        may_lack_keys=kind.may_lack_keys,
        is_trusted=location != "project",
        findings=tuple(findings),
    )


def _read_bounded(tree: DirectoryTree, path: str) -> bytes:
    size = tree.size(path)
    if size > MAX_BYTES:
        raise ToolError(f"{path} has {size:,} bytes; at most {MAX_BYTES:,} are read.")
    return tree.read(path, max_bytes=MAX_BYTES)
