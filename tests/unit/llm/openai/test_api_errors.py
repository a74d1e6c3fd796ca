import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.llm.openai.api_errors import (
    LONGEST_WAIT_SECONDS,
    classify_error,
    error_excerpt,
    parse_error_body,
    wait_seconds,
)

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def error(message: str, code: str = "", param: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "code": code, "param": param, "type": "x"}})


@pytest.mark.parametrize(
    ("status", "body", "scope"),
    [
        (401, error("Incorrect API key"), "run"),
        (402, "", "run"),
        (403, error("no"), "run"),
        (404, error("The model `x` does not exist", "model_not_found"), "run"),
        (404, "404 page not found", "run"),
        (400, error("x is not a valid model ID"), "run"),
        (400, error("registry.ollama.ai/library/gemma does not support tools"), "run"),
        (400, error('"auto" tool choice requires --enable-auto-tool-choice to be set'), "run"),
        (429, error("You exceeded your current quota", "insufficient_quota"), "run"),
        (307, "", "run"),
        (405, "", "run"),
        (
            400,
            error("This model's maximum context length is 8192 tokens", "context_length_exceeded"),
            "attempt",
        ),
        (
            400,
            error("the request exceeds the available context size, try increasing it"),
            "attempt",
        ),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum"), "attempt"),
        (413, "", "attempt"),
        (400, error("The response was filtered due to content management policy"), "attempt"),
        (400, error("something else"), "attempt"),
        (418, "", "attempt"),
        (408, "", "call"),
        (409, "", "call"),
        (425, "", "call"),
        (429, error("Rate limit reached for the model", "rate_limit_exceeded"), "call"),
        (429, "", "call"),
        (500, error("The server had an error; it took too long"), "call"),
        (502, "<html><body>Bad Gateway</body></html>", "call"),
        (503, "", "call"),
        (529, "", "call"),
        (599, "[" * 50_000, "call"),
    ],
)
def test_each_http_status_has_its_scope(status: int, body: str, scope: str):
    assert classify_error(parse_error_body(status, body)).scope == scope


@pytest.mark.parametrize("status", [401, 402, 403, 404, 307])
def test_error_that_needs_the_user_names_the_setting(status: int):
    assert "llm." in (classify_error(parse_error_body(status, "")).next_step or "")


def test_missing_model_and_wrong_address_have_different_next_steps():
    model = classify_error(
        parse_error_body(404, error("The model 'x' does not exist", "model_not_found"))
    )
    address = classify_error(parse_error_body(404, '{"detail":"Not Found"}'))
    assert "llm.model" in (model.next_step or "")
    assert "llm.base_url" in (address.next_step or "")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (error("said"), "said"),
        ('{"error": "said"}', "said"),
        ('{"detail": "said"}', "said"),
        ('{"message": "said"}', "said"),
        (
            '{"detail": [{"loc": ["body", "x"], "msg": "said"}]}',
            '[{"loc": ["body", "x"], "msg": "said"}]',
        ),
        ("<html><title>said</title></html>", "said"),
        ("said", "said"),
        ("", ""),
        ("null", "null"),
    ],
)
def test_errors_of_many_servers_are_read(body: str, text: str):
    assert error_excerpt(parse_error_body(400, body).text) == text


def test_error_excerpt_is_one_short_line_without_control_characters():
    text = error_excerpt("a\x1b[2J\n\tb\u202e" + "x" * 1000)
    assert text.isprintable()
    assert text.startswith("a [2J b ")
    assert len(text) < 310


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        (" 2.5 ", 2.5),
        ("0", 0.0),
        ("-5", 0.0),
        ("99999999999", LONGEST_WAIT_SECONDS),
        ("inf", LONGEST_WAIT_SECONDS),
        ("-inf", 0.0),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("9" * 400, LONGEST_WAIT_SECONDS),
        (format_datetime(NOW + timedelta(seconds=7), usegmt=True), 7.0),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0),
        ("Tue, 32 Foo 2030 99:99:99 GMT", None),
        ("Wed, 02 Jan 9999 03:04:05 GMT", LONGEST_WAIT_SECONDS),
    ],
)
def test_every_form_of_retry_after_is_read_and_capped(value: str, seconds: float | None):
    assert wait_seconds({"retry-after": value}, NOW) == seconds


def test_milliseconds_go_first():
    assert wait_seconds({"retry-after-ms": "1500", "retry-after": "9"}, NOW) == 1.5


def test_retry_date_is_relative_to_the_date_header():
    skewed = NOW + timedelta(hours=5)
    headers = {
        "date": format_datetime(skewed, usegmt=True),
        "retry-after": format_datetime(skewed + timedelta(seconds=4), usegmt=True),
    }
    assert wait_seconds(headers, NOW) == 4.0


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_header_can_break_the_wait(value: str, date: str):
    seconds = wait_seconds({"retry-after": value, "date": date}, NOW)
    assert seconds is None or 0 <= seconds <= LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(
    "body",
    [
        '[{"error": {"code": 400, "message": "the cause", "status": "INVALID_ARGUMENT"}}]',
        '{"error": [{"message": "the cause"}]}',
        '{"errors": [{"message": "the cause"}]}',
        '{"fault": {"detail": {"reason": "the cause"}}}',
        "<html><head><title>the cause</title><style>p {a: b}</style></head><h1>the cause</h1></html>",
        "<p>the cause",
    ],
)
def test_a_list_or_a_page_is_shown_as_its_message(body: str):
    assert parse_error_body(400, body).text == "the cause"


@pytest.mark.parametrize(
    "body",
    ["<" * 100_000, "<!--" * 30_000, "[[{" * 20_000, "<a " * 40_000, "&#" * 40_000],
)
def test_a_hostile_body_is_read_in_little_time(body: str):
    assert len(parse_error_body(500, body).text) <= 4000


def test_proxy_authentication_error_names_the_setting():
    verdict = classify_error(parse_error_body(407, "<h1>Proxy Authentication Required</h1>"))
    assert verdict.scope == "run"
    assert "llm.proxy" in (verdict.next_step or "")
