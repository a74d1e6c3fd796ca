"""Instructions that a project has for agents: `AGENTS.md`, files of Copilot, skills."""

from collections.abc import Iterable, Iterator

from mimir.domain.value_class import value_class
from mimir.errors import ToolError
from mimir.registry.formats.agent_reader import AgentFile, read_agent_file, slug_of
from mimir.workspace.paths import DirectoryTree

FILES = ("AGENTS.md", ".github/copilot-instructions.md", ".github/instructions/*.instructions.md")
"""Globs, in the order of the list."""
SKILL = "skill:"
"""Beginning of the name of a skill."""
MAX_INSTRUCTIONS = 200
MAX_BYTES = 200_000
MAX_DESCRIPTION = 200


@value_class
class ProjectInstruction:
    """Instructions with their text; the text is untrusted."""

    name: str
    """Path in the project, or `skill:NAME`."""
    description: str
    text: str


def find_instructions(
    tree: DirectoryTree, files: Iterable[AgentFile]
) -> tuple[ProjectInstruction, ...]:
    """Return the instructions of a project; files that cannot be read are left out.

    Args:
        tree: The project; no link out of it is followed.
        files: Agent files and skills, in the order of their precedence.
    """
    # The first of a name counts: skills of the user precede those of the project.
    found = [*_read_files(tree), *_read_skills(files)]
    return tuple({one.name: one for one in reversed(found)}.values())[::-1][:MAX_INSTRUCTIONS]


def _read_files(tree: DirectoryTree) -> Iterator[ProjectInstruction]:
    for glob in FILES:
        for path in sorted(tree.walk(glob)):
            try:
                text = tree.read(path, max_bytes=MAX_BYTES).decode("utf-8", "replace")
            except ToolError:  # a link, or no regular file
                continue
            yield ProjectInstruction(name=path, description=_describe(text), text=text)


def _read_skills(files: Iterable[AgentFile]) -> Iterator[ProjectInstruction]:
    for file in files:
        if file.is_agent:
            continue
        read = read_agent_file(file)
        if not read.has_errors:
            name, description = f"{SKILL}{slug_of(file.name)}", read.description[:MAX_DESCRIPTION]
            yield ProjectInstruction(name=name, description=description, text=read.prompt)


def _describe(text: str) -> str:
    """Return the description of the front matter, otherwise the first line with words."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -#\t")]
    for line in lines[:20]:
        key, colon, value = line.partition(":")
        if colon and key == "description":
            return value.strip(" '\"")[:MAX_DESCRIPTION]
    return lines[0].lstrip("# ")[:MAX_DESCRIPTION] if lines else ""
