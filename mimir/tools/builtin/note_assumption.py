"""The `note_assumption` tool: assumptions of the work, which the report lists."""

from collections.abc import Callable, Sequence

from mimir.domain.agent import NOTE_TOOL
from mimir.domain.message import ToolResult
from mimir.domain.question import require_plain
from mimir.errors import ToolError
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, string

MOST_NOTES = 20
"""Assumptions of one attempt."""
MAX_NOTE = 500


class NoteAssumptionTool(LocalTools):
    """The toolset of the one tool `note_assumption`; the recorded call is the note."""

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        """Bind the tool; `redact` replaces secrets before the limits are checked."""
        self._redact = redact
        super().__init__((_SPEC,))

    def _handlers(self) -> Sequence[Handler]:
        return (self._note,)

    async def _note(self, given: ToolArguments) -> ToolResult:
        try:
            for name in ("text", "because"):
                require_plain(self._redact(given.text(name)).strip(), name, MAX_NOTE)
        except ValueError as error:
            raise ToolError(f"Not noted: {error}.") from None
        return ToolResult(text="Noted; the user reads it in the report.")


_SPEC = describe_tool(
    NOTE_TOOL,
    "Note an assumption that your work rests on and that the user may want to correct.",
    {
        "text": string(f"The assumption, at most {MAX_NOTE} characters."),
        "because": string("Why you assume it."),
    },
    required=("text", "because"),
)
