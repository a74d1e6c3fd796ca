import pytest

from mimir.llm.openai.api_errors import ErrorResponse
from mimir.llm.openai.capabilities import Capabilities, RequestTokens, adapt

SENT = {
    "model",
    "messages",
    "max_tokens",
    "stream",
    "stream_options",
    "temperature",
    "tools",
    "tool_choice",
    "response_format",
}
FIRST = Capabilities()


def refused(text: str, parameter: str = "", status: int = 400, code: str = "") -> ErrorResponse:
    return ErrorResponse(status=status, text=text, code=code, parameter=parameter)


@pytest.mark.parametrize(
    ("refusal", "dropped"),
    [
        (
            refused(
                "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.",
                "temperature",
            ),
            "temperature",
        ),
        (
            refused("Unsupported parameter: 'temperature' is not supported with this model."),
            "temperature",
        ),
        (refused("Unrecognized request argument supplied: stream_options"), "stream_options"),
        (
            refused(
                "[{'type': 'extra_forbidden', 'loc': ('body', 'tool_choice'), 'msg': 'Extra inputs are not permitted'}]",
                status=422,
            ),
            "tool_choice",
        ),
        (refused("tool_choice 'none' is not supported"), "tool_choice"),
        (
            refused("Invalid schema for response_format 'verdict'", "response_format"),
            "response_format",
        ),
        (refused("This model does not support json_schema"), "response_format"),
        (
            refused("structured outputs: unknown field", "response_format.json_schema.strict"),
            "response_format",
        ),
        (refused("stream is not supported for this model"), "stream"),
    ],
)
def test_a_parameter_that_the_endpoint_names_is_dropped(refusal: ErrorResponse, dropped: str):
    learned = adapt(FIRST, refusal, SENT)
    assert learned is not None
    assert learned[0].dropped == {dropped}
    assert learned[1:] == (dropped, "dropped")


def test_the_bound_of_the_answer_is_renamed_never_dropped():
    text = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    learned = adapt(FIRST, refused(text, "max_tokens"), SENT)
    assert learned is not None
    dialect, parameter, change = learned
    assert dialect.tokens == "max_completion_tokens"
    assert (parameter, change) == ("max_tokens", "renamed to max_completion_tokens")
    back = refused("Unrecognized request argument supplied: max_completion_tokens")
    assert adapt(dialect, back, SENT | {"max_completion_tokens"} - {"max_tokens"}) is None


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided 16000.",
        "max_tokens must be less than or equal to `4096`, the maximum value for this model",
        "invalid max_tokens value, the valid range is <= 4096",
    ],
)
def test_token_limit_is_lowered_to_the_limit_in_the_error(text: str):
    learned = adapt(FIRST, refused(text, "max_tokens"), SENT)
    assert learned is not None
    assert learned[0] == Capabilities(token_cap=4096)
    assert adapt(learned[0], refused(text, "max_tokens"), SENT) is None


@pytest.mark.parametrize(
    "refusal",
    [
        refused(
            "maximum context length is 8192 tokens; reduce max_tokens",
            code="context_length_exceeded",
        ),
        refused("The model 'x' does not exist, temperature unknown"),
        refused("The response was filtered: content_filter; invalid temperature"),
        refused("Something is wrong with the temperature outside"),
        refused("Invalid 'messages[3].content'"),
        refused("Unsupported parameter: 'seed'", "seed"),
        refused("temperature is not supported", status=500),
    ],
)
def test_other_refusals_change_nothing(refusal: ErrorResponse):
    assert adapt(FIRST, refusal, SENT) is None


def test_parameter_that_was_not_sent_is_not_dropped():
    assert (
        adapt(FIRST, refused("Unsupported parameter: temperature"), {"model", "messages"}) is None
    )


@pytest.mark.parametrize(
    ("text", "context"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens "
            "(5100 in the messages, 4000 in the completion).",
            8092,
        ),
        (
            "'max_tokens' is too large: 4000. This model's maximum context length is 8192 tokens and your request has "
            "5000 input tokens (4000 > 8192 - 5000).",
            8192,
        ),
        ("the request exceeds the available context size (6,000 tokens)", 6000),
    ],
)
def test_a_context_error_with_numbers_reduces_the_answer_once(text: str, context: int):
    size = RequestTokens(prompt=5000, answer=4000)
    learned = adapt(FIRST, refused(text), SENT, size=size)
    assert learned is not None
    assert learned[0].context_tokens == context
    assert adapt(learned[0], refused(text), SENT, size=size) is None


def test_a_prompt_that_does_not_fit_alone_changes_nothing():
    text = "This model's maximum context length is 4096 tokens; your messages have 5000 tokens."
    size = RequestTokens(prompt=5000, answer=4000)
    assert adapt(FIRST, refused(text), SENT, size=size) is None


def test_incompatible_tools_and_response_format_are_sent_separately():
    for text in (
        "Function calling with a response mime type: 'application/json' is unsupported",
        "json mode cannot be combined with tool/function calling",
    ):
        learned = adapt(FIRST, refused(text), {*SENT, "tools"})
        assert learned is not None
        assert learned[1:] == ("response_format", "dropped")
