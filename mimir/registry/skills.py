"""Skills that a definition lists, read with their files as a run pins them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mimir.domain.invocation import PinnedSkill
from mimir.errors import ToolError
from mimir.registry.formats.agent_reader import AgentFile, read_agent_file, slug_of
from mimir.workspace.paths import DirectoryTree

MAX_SKILLS = 20
MAX_FILES = 50
MAX_FILE_BYTES = 200_000
_SHOWN = ("references", "assets")
_RUN = ("scripts",)


def pin_skills(
    names: Sequence[str], files: Iterable[AgentFile], project: Path
) -> tuple[tuple[PinnedSkill, ...], tuple[str, ...]]:
    """Return the named skills, and the names without a usable skill; the first file wins.

    Args:
        names: As in the definition.
        files: Of all places, in the order of their precedence.
        project: Directory that relative paths start from.
    """
    wanted = list(dict.fromkeys(slug_of(name) for name in names))[:MAX_SKILLS]
    found: dict[str, PinnedSkill] = {}
    for file in files:
        name = slug_of(file.name)
        if file.is_agent or name in found or name not in wanted:
            continue
        read = read_agent_file(file)
        if not read.has_errors:
            found[name] = PinnedSkill(
                name=name,
                description=read.description,
                body=read.prompt,
                files=tuple(_read_files((project / file.path).parent, _SHOWN)),
                scripts=tuple(_read_files((project / file.path).parent, _RUN)),
            )
    kept = tuple(found[name] for name in wanted if name in found)
    return kept, tuple(name for name in names if slug_of(name) not in found)


def _read_files(folder: Path, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the text files of a skill; links and large files are left out."""
    tree = DirectoryTree(folder)
    paths = [path for part in parts for path in tree.walk(f"{part}/**")]
    for path in paths[:MAX_FILES]:
        try:
            data = tree.read(path, max_bytes=MAX_FILE_BYTES + 1)
            if len(data) <= MAX_FILE_BYTES:
                yield path, data.decode("utf-8")
        except (ToolError, UnicodeDecodeError):
            # A binary asset is of no use to a model.
            continue
