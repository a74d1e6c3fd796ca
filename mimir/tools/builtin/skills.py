"""The `read_skill` tool: the instructions of the skills that an agent definition lists."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mimir.domain.agent import SKILL_TOOL
from mimir.domain.invocation import PinnedSkill
from mimir.domain.message import ToolResult
from mimir.domain.quoted_text import list_names, quote_text
from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, string
from mimir.tools.scope import WORKSPACE

SCRIPTS = ".skill"
"""Read-only folder of a workspace in which commands see the scripts of skills."""


class SkillTools(LocalTools):
    """The toolset of the one tool `read_skill`."""

    def __init__(self, skills: Sequence[PinnedSkill]) -> None:
        """Bind the tool to pinned skills; later edits of their files do not count."""
        self._skills = {one.name: one for one in skills}
        super().__init__((_SPEC,))

    def _handlers(self) -> Sequence[Handler]:
        return (self._read,)

    async def _read(self, given: ToolArguments) -> ToolResult:
        name, path = given.text("name"), given.text("path", "")
        skill = self._skills.get(name)
        if skill is None:
            raise ToolError(
                f"There is no skill {quote_text(name)} that you may read.",
                next_step=f"You may read: {list_names(tuple(self._skills), 20)}.",
            )
        files = dict(skill.files)
        if path and path not in files:
            raise ToolError(
                f"The skill {quote_text(name)} has no file {quote_text(path)}.",
                next_step=f"It has: {list_names(tuple(files), 30)}." if files else "",
            )
        if path:
            return ToolResult(text=files[path])
        more = f"\n\nFiles: {', '.join(files)}" if files else ""
        places = ", ".join(f"{SCRIPTS}/{name}/{script}" for script, _ in skill.scripts)
        more += f"\n\nScripts, for the tool run if you have it: {places}" if places else ""
        return ToolResult(text=f"{skill.body}{more}")


@value_class
class SkillScripts:
    """The scripts of pinned skills, as commands see them."""

    skills: Sequence[PinnedSkill]
    folder: Path
    """Outside of every workspace; it is filled for the first command."""

    def mount(self, workspace: Path) -> Mapping[str, Path]:
        """Return (path inside → folder) of each skill with scripts. Blocking."""
        mounts: dict[str, Path] = {}
        for skill in self.skills if _is_free(workspace / SCRIPTS) else ():
            if not skill.scripts or not _is_free(workspace / SCRIPTS / skill.name):
                continue
            source = self.folder / skill.name
            for path, text in skill.scripts:
                target = source / path
                if not target.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text, encoding="utf-8")
                    target.chmod(0o755)
            mounts[f"{WORKSPACE}/{SCRIPTS}/{skill.name}"] = source
        return mounts


def _is_free(place: Path) -> bool:
    """Return whether a folder can be mounted: a link of the project could lead elsewhere."""
    return not os.path.lexists(place) or (place.is_dir() and not place.is_symlink())


_SPEC = describe_tool(
    SKILL_TOOL,
    "Read the instructions of a skill, or one of its files.",
    {
        "name": string("Name of the skill."),
        "path": string("File of the skill, such as references/form.md. Default: its instructions."),
    },
    required=("name",),
)
