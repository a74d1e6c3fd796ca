"""The tool `get_available_instructions`: instructions of the project, as material."""

from mimir.agents.context.quotation import fence_block
from mimir.errors import ToolError
from mimir.mcp_server.tools.tool_values import IncomingCall, ToolAnswer
from mimir.tools.secrets import Redactor

MAX_CHARS = 20_000
"""Characters of one text."""


async def get_available_instructions(call: IncomingCall) -> ToolAnswer:
    """Return names and descriptions of instructions; with `name`, the quoted text of one."""
    # Imported here: the list of tools needs none of it.
    from mimir.bootstrap.agents.definition_files import open_agent_files

    loaded = call.project.load()
    redact = Redactor(loaded.secrets)
    found = open_agent_files(call.project.directory, loaded).load_instructions()
    wanted = call.arguments.text("name")
    if not wanted:
        listed = [{"name": one.name, "description": redact(one.description)} for one in found]
        return ToolAnswer(content={"instructions": listed})
    # Only names of the list: an argument is never opened as a path.
    for one in found:
        if one.name == wanted:
            text = redact(one.text)
            content = {
                "name": one.name,
                "text": fence_block(text[:MAX_CHARS]),
                "characters": len(text),
            }
            return ToolAnswer(content=content)
    names = ", ".join(one.name for one in found) or "none"
    raise ToolError(f"There are no instructions {wanted[:80]!r}.", next_step=f"There are: {names}")
