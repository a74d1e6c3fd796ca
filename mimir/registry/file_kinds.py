"""Which format a path has, from its name and folders alone. Pure."""

from collections.abc import Collection
from pathlib import PurePosixPath

from mimir.domain.agent_definition import AgentFormat
from mimir.domain.value_class import value_class

CONFIGURATIONS = ("config.yaml", "config.yml")
PROMPT = "prompt.md"
SKILL = "SKILL.md"
CODE = (".ts", ".js", ".mjs", ".cjs", ".py")
_AGENT_FOLDERS = ("agents", "agent")


@value_class
class FileKind:
    """The format of one path."""

    format: AgentFormat
    name: str
    """Name of the definition, if its file gives none; `skill/agent` of a skill's agent."""
    is_agent: bool = True
    may_lack_keys: bool = False
    is_code: bool = False


def classify(path: str, siblings: Collection[str] = ()) -> FileKind | None:
    """Return the format of a file; None: it is no agent file, or a part of one.

    Args:
        path: With `/`, from any directory; the more of it, the better.
        siblings: Names of the other files in its folder.
    """
    pure = PurePosixPath(path)
    folder = pure.parent.name
    if _is_definition_folder({pure.name, *siblings}, pure):
        return _classify_in_folder(pure)
    if pure.name == SKILL:
        return _classify_skill(pure)
    if pure.suffix in CODE and _is_agent_place(pure.parent):
        return FileKind(format="claude", name=pure.stem, is_code=True)
    if pure.suffix != ".md":
        return None
    for suffix, is_mode in ((".chatmode.md", True), (".agent.md", False)):
        if pure.name.endswith(suffix):
            name = pure.name.removesuffix(suffix)
            return FileKind(format="copilot", name=name, may_lack_keys=is_mode)
    if ".github" in pure.parts and folder == "agents":
        return FileKind(format="copilot", name=pure.stem)
    if folder in _AGENT_FOLDERS and pure.parent.parent.name in (".opencode", "opencode"):
        return FileKind(format="opencode", name=pure.stem)
    return FileKind(format="claude", name=pure.stem)


def _is_definition_folder(names: set[str], pure: PurePosixPath) -> bool:
    """Return whether a folder with these files holds one definition."""
    if names.intersection(CONFIGURATIONS) and PROMPT in names:
        return True
    # With one of the two files, only the place shows that it is a definition.
    above = pure.parent.parent.name
    return pure.name in (PROMPT, *CONFIGURATIONS) and above in (*_AGENT_FOLDERS, "background")


def _classify_in_folder(pure: PurePosixPath) -> FileKind | None:
    if pure.name != PROMPT and pure.name not in CONFIGURATIONS:
        return None
    return FileKind(format="folder", name=pure.parent.name)


def _classify_skill(pure: PurePosixPath) -> FileKind:
    above = pure.parent.parent
    if above.name != "agents" or not above.parent.name:
        return FileKind(format="skill", name=pure.parent.name, is_agent=False)
    skill = above.parent.name
    is_place = skill.startswith(".")  # `.agents/agents/x/SKILL.md` belongs to no skill
    name = pure.parent.name if is_place else f"{skill}/{pure.parent.name}"
    return FileKind(format="skill", name=name)


def _is_agent_place(folder: PurePosixPath) -> bool:
    return folder.name in _AGENT_FOLDERS
