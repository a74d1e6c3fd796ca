"""The agent definitions of one project and its user, with the trust in each."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mimir.domain.agent_definition import AgentDefinition
from mimir.domain.invocation import PinnedSkill
from mimir.domain.value_class import value_class
from mimir.errors import ToolError, UsageError
from mimir.registry import shipped
from mimir.registry.catalogue import AgentCatalogue, AgentEntry, build_catalogue
from mimir.registry.discovery import (
    CHECK_LEVELS,
    CONFIG_PLACES,
    HOME_PLACES,
    PROJECT_PLACES,
    SearchPlace,
    find_agent_files,
    read_named_file,
)
from mimir.registry.formats.agent_reader import AgentFile, read_agent_file, slug_of
from mimir.registry.formats.project_instructions import ProjectInstruction, find_instructions
from mimir.registry.skills import FoundSkill, find_skills
from mimir.registry.trust import AgentTrust
from mimir.workspace.paths import DirectoryTree
from mimir.workspace.safe_walk import quote_path


@value_class
class AgentFiles:
    """The agent definitions that one project and its user have."""

    project: Path
    home: Path | None
    config: Path | None
    """Directory of the settings of all programs, such as `~/.config`."""
    extra: Sequence[Path]
    project_first: bool
    default_tools: tuple[str, ...]
    models: Mapping[str, str]
    """Name in a definition → model."""
    trust: AgentTrust

    def load(self) -> AgentCatalogue:
        """Read every definition, in all places."""
        files = find_agent_files(list(self._places()))
        return build_catalogue(
            map(self._read, files),
            project_first=self.project_first,
            default_tools=self.default_tools,
            models=self.models,
        )

    def pin_skills(self, entry: AgentEntry) -> tuple[tuple[PinnedSkill, ...], tuple[str, ...]]:
        """Return the skills that an agent gets, and a sentence on each one that it does not get."""
        # An untrusted definition only reads, whatever its skills order.
        is_trusted = entry.definition.source.is_trusted
        unapproved = self.list_unapproved_skills(entry) if is_trusted else ()
        doubtful = {one.skill.name for one in unapproved}
        found = {one.skill.name: one.skill for one in self._find_skills(entry)}
        kept = tuple(skill for name, skill in found.items() if name not in doubtful)
        refused = [name for name in entry.definition.skills if slug_of(name) not in found]
        reason = [
            f"{entry.address} names the skill {name!r}, which does not exist." for name in refused
        ]
        reason += [
            f"{entry.address} does not get the skill {name!r} of the project, which is not trusted: "
            f"mimir agents trust {entry.address}"
            for name in sorted(doubtful)
        ]
        return kept, tuple(reason)

    def list_unapproved_skills(self, entry: AgentEntry) -> tuple[FoundSkill, ...]:
        """Return the skills of the project that a definition names and the user has not approved."""
        return tuple(
            one
            for one in self._find_skills(entry)
            if one.location == "project" and not self.trust.holds(one.hash, one.path)
        )

    def _find_skills(self, entry: AgentEntry) -> tuple[FoundSkill, ...]:
        names = entry.definition.skills
        files = find_agent_files(list(self._places()), skills=True) if names else ()
        return find_skills(names, files, self.project)

    def load_instructions(self) -> tuple[ProjectInstruction, ...]:
        """Return the instructions of the project, and the skills of all places."""
        files = find_agent_files(list(self._places()), skills=True)
        return find_instructions(DirectoryTree(self.project), files)

    def check(self, paths: Sequence[str]) -> tuple[AgentDefinition, ...]:
        """Read the agent files and skills of some paths; without one, those of the project.

        Raises:
            UsageError: A path does not exist.
        """
        if not paths:
            files = find_agent_files(list(self._project_places()), skills=True)
            return tuple(map(self._read, files))
        return tuple(self._read(file) for path in paths for file in self._named_files(path))

    def _named_files(self, path: str) -> Iterator[AgentFile]:
        target = self.project / path
        if target.is_dir():
            place = SearchPlace(
                root=target,
                place="",
                location="project",
                levels=CHECK_LEVELS,
                is_shown_relative=True,
            )
            for file in find_agent_files([place], skills=True):
                yield replace(file, path=f"{path.rstrip('/')}/{file.path}")
            return
        if not target.exists():
            raise UsageError(
                f"{quote_path(path)} does not exist.", next_step="Name a file or a directory."
            )
        yield replace(read_named_file(target.parent, target.name), path=path)

    def _read(self, file: AgentFile) -> AgentDefinition:
        found = read_agent_file(file)
        source = found.source
        if source.location != "project" or not self.trust.holds(source.hash, source.path):
            return found
        return replace(found, source=replace(source, is_trusted=True))

    def _project_places(self) -> Iterator[SearchPlace]:
        for place in PROJECT_PLACES:
            yield SearchPlace(
                root=self.project, place=place, location="project", is_shown_relative=True
            )

    def _places(self) -> Iterator[SearchPlace]:
        for root, places in ((self.home, HOME_PLACES), (self.config, CONFIG_PLACES)):
            for place in places if root else ():
                assert root is not None
                # A user may keep the folder elsewhere and link to it.
                yield SearchPlace(root=root / place, place="", location="user")
        for root in self.extra:
            yield SearchPlace(root=root, place="", location="extra")
        yield SearchPlace(root=Path(shipped.__path__[0]), place="", location="shipped")
        yield from self._project_places()


def hash_file(project: Path, path: str) -> str:
    """Return the SHA-256 of a file of the project; empty: there is no such regular file."""
    try:
        return hashlib.sha256(DirectoryTree(project).read(path)).hexdigest()
    except ToolError:
        return ""
