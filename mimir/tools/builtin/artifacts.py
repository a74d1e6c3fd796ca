"""The `read_artifact` tool: the answers of other tasks that an attempt may read."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from mimir.domain.message import ToolResult
from mimir.domain.quoted_text import list_names, quote_text
from mimir.errors import ToolError
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, string, whole_number
from mimir.tools.calls.text_pages import MAX_CHARS

MAX_OFFSET = 1_000_000_000


class ArtifactTools(LocalTools):
    """The toolset of the one tool `read_artifact`."""

    def __init__(
        self,
        read: Callable[[str], Awaitable[str | None]],
        granted: Collection[str],
        *,
        redact: Callable[[str], str] = str,
        max_chars: int = MAX_CHARS,
    ) -> None:
        """Bind the tool to the ids that this attempt may read.

        Args:
            read: Returns the whole text of an id; None if it is unknown.
            granted: Ids; any other id is refused in the same words, whether it exists or not.
            redact: Applied before the text is cut into pages.
            max_chars: Most characters of one page.
        """
        self._read_text = read
        self._granted = tuple(sorted(granted))
        self._redact = redact
        self._max_chars = max_chars
        super().__init__((_SPEC,))

    def _handlers(self) -> Sequence[Handler]:
        return (self._read,)

    async def _read(self, given: ToolArguments) -> ToolResult:
        id, offset = given.text("id"), given.number("offset", 0)
        text = await self._read_text(id) if id in self._granted else None
        if text is None:
            raise ToolError(
                f"There is no artifact {quote_text(id)} that you may read.",
                next_step=f"You may read: {list_names(self._granted, 30)}.",
            )
        text = self._redact(text)
        if offset and offset >= len(text):
            raise ToolError(
                f"The artifact has {len(text):,} characters; offset {offset:,} is past its end.",
                next_step="Give a smaller offset.",
            )
        part = text[offset : offset + self._max_chars]
        end = offset + len(part)
        header = f"{quote_text(id)[1:-1]}, characters {offset:,} to {end:,} of {len(text):,}"
        more = f"\n[not the end: read on with offset={end}]" if end < len(text) else ""
        return ToolResult(text=f"{header}\n{part}{more}")


_SPEC = describe_tool(
    "read_artifact",
    "Read a text that your instructions refer to by its artifact id, in pages.",
    {
        "id": string("As written in your instructions."),
        "offset": whole_number(0, MAX_OFFSET, "Character to start at. Default 0."),
    },
    required=("id",),
)
