"""Skills that a definition lists, read with their files as a run pins them."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from mimir.domain.agent_definition import AgentLocation
from mimir.domain.invocation import PinnedSkill
from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.registry.formats.agent_reader import AgentFile, read_agent_file, slug_of
from mimir.workspace.paths import DirectoryTree

MAX_SKILLS = 20
MAX_FILES = 50
MAX_FILE_BYTES = 200_000
_SHOWN = ("references", "assets")
_RUN = ("scripts",)


@value_class
class FoundSkill:
    """A skill with its origin."""

    skill: PinnedSkill
    path: str
    """Of its `SKILL.md`."""
    location: AgentLocation

    @property
    def hash(self) -> str:
        """SHA-256 of all that an agent gets from it."""
        return hashlib.sha256(json.dumps(asdict(self.skill)).encode()).hexdigest()


def find_skills(
    names: Sequence[str], files: Iterable[AgentFile], project: Path
) -> tuple[FoundSkill, ...]:
    """Return the named skills that are usable, in the order of the names; the first file wins.

    Args:
        names: As in the definition.
        files: Of all places, in the order of their precedence.
        project: Directory that relative paths start from.
    """
    wanted = list(dict.fromkeys(slug_of(name) for name in names))[:MAX_SKILLS]
    found: dict[str, FoundSkill] = {}
    for file in files:
        name = slug_of(file.name)
        if file.is_agent or name in found or name not in wanted:
            continue
        read = read_agent_file(file)
        if not read.has_errors:
            folder = (project / file.path).parent
            skill = PinnedSkill(
                name=name,
                description=read.description,
                body=read.prompt,
                files=tuple(_read_files(folder, _SHOWN)),
                scripts=tuple(_read_files(folder, _RUN)),
            )
            found[name] = FoundSkill(skill=skill, path=file.path, location=file.location)
    return tuple(found[name] for name in wanted if name in found)


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
