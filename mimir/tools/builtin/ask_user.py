"""The `ask_user` tool: one question to the user, answered at any time from any terminal."""

from collections.abc import Callable, Sequence

from mimir.domain.agent import ASK_TOOL
from mimir.domain.message import ToolResult
from mimir.domain.question import (
    MAX_OPTIONS,
    MAX_TEXT,
    MAX_TITLE,
    NewQuestion,
    QuestionForm,
    QuestionLimits,
    choice_form,
    find_secret,
    read_default,
    read_form,
    require_plain,
)
from mimir.domain.quoted_text import quote_text
from mimir.errors import ToolError
from mimir.tools.calls.arguments import ToolArguments
from mimir.tools.calls.local_tools import Handler, LocalTools, describe_tool, string


class AskUserTool(LocalTools):
    """The toolset of the one tool `ask_user`; the transcript asks, see `read_question`."""

    def __init__(self, limits: QuestionLimits, *, redact: Callable[[str], str] = str) -> None:
        """Bind the tool to the limits of a run."""
        self._limits = limits
        self._redact = redact
        super().__init__((_SPEC,))

    def _handlers(self) -> Sequence[Handler]:
        return (self._refuse,)

    async def _refuse(self, given: ToolArguments) -> ToolResult:
        """Refuse a call outside a transcript, where no task can wait."""
        del given
        raise ToolError("Questions are not possible here.")

    def read_question(self, given: ToolArguments) -> NewQuestion:
        """Return the question of a call.

        Raises:
            ToolError: It cannot be asked; nothing was asked.
        """
        # Redacted first: the limits apply to the stored text.
        title, text = (self._redact(given.text(name)).strip() for name in ("title", "text"))
        is_blocking = given.values.get("blocking", True) is True
        try:
            require_plain(title, "title", MAX_TITLE, one_line=True)
            require_plain(text, "text", MAX_TEXT)
            form = _read_form(given)
            wanted = given.values.get("default")
            default = None if wanted is None else read_default(form, wanted)
        except ValueError as error:
            raise ToolError(f"Not asked: {error}.") from None
        if len(form.fields) > self._limits.fields:
            raise ToolError(
                f"Not asked: it has {len(form.fields)} fields; {self._limits.fields} are the maximum."
            )
        if found := find_secret(title, text, form):
            raise ToolError(
                f"Not asked: the question asks for a secret ({quote_text(found)}).",
                next_step="Ask the user to put it in the settings, and to name the variable.",
            )
        if not is_blocking and default is None:
            raise ToolError("Not asked: a question that does not wait needs a default.")
        return NewQuestion(
            title=title,
            text=text,
            form=form,
            default=default,
            is_blocking=is_blocking,
            limits=self._limits,
        )


def _read_form(given: ToolArguments) -> QuestionForm:
    if given.has("schema") and given.has("options"):
        raise ValueError("schema and options exclude each other")
    if given.has("options"):
        return choice_form(given.texts("options"))
    return read_form(given.members("schema")) if given.has("schema") else QuestionForm()


_SPEC = describe_tool(
    ASK_TOOL,
    "Ask the user for information that only the user has, and that no file or tool can give. "
    "Your work waits until the answer exists; other tasks continue. Never ask for a secret.",
    {
        "title": string(f"The question in one line, at most {MAX_TITLE} characters."),
        "text": string(
            f"The missing information, the reason, and the work that depends on it; at most {MAX_TEXT} characters."
        ),
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 2,
            "maxItems": MAX_OPTIONS,
            "description": "Answers to choose from. Without options and schema the answer is free text.",
        },
        "schema": {
            "type": "object",
            "description": "Flat JSON Schema of several fields: string, number, boolean, enum, array of enum.",
        },
        "default": {
            "description": "Answer that holds if none comes: a value, or an object with all fields."
        },
        "blocking": {
            "type": "boolean",
            "description": "false: do not wait, use the default at once as an assumption. Default true.",
        },
    },
    required=("title", "text"),
    read_only=False,
)
