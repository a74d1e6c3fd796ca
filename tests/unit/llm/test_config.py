import base64

import pytest

from mimir.errors import ConfigurationError
from mimir.llm.config import OPENAI_URL, EndpointConfig, split_provider

KEY = "sk-very-secret-0123456789"


def test_an_empty_address_is_openais():
    assert EndpointConfig(api_key=KEY).base_url == OPENAI_URL
    assert EndpointConfig(api_key=KEY).is_openai


def test_a_trailing_slash_and_spaces_do_not_matter():
    assert EndpointConfig(base_url=" http://localhost:1/v1/ ").base_url == "http://localhost:1/v1"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://host/v1",
        "http://",
        "http://h ost/v1",
        "http://host/v1?x=1",
        "http://h:99999/v1",
        "http://[::1/v1",
        "http://host/\x1b[2J",
        f"http://{'a' * 300}/v1",
    ],
)
def test_impossible_address_is_refused_by_the_name_of_its_setting(url: str):
    with pytest.raises(ConfigurationError, match=r"llm\.base_url") as caught:
        EndpointConfig(base_url=url)
    assert caught.value.exit_code == 78
    assert "\x1b" not in str(caught.value)


def test_a_password_in_the_address_is_refused_without_showing_it():
    with pytest.raises(ConfigurationError) as caught:
        EndpointConfig(base_url="https://me:hunter2@host/v1")
    assert "hunter2" not in f"{caught.value} {caught.value.next_step}"


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ä", "sk a"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str):
    with pytest.raises(ConfigurationError, match=r"llm\.api_key") as caught:
        EndpointConfig(api_key=key)
    assert key not in str(caught.value)


def test_key_is_in_no_representation():
    config = EndpointConfig(api_key=KEY, headers={"x-api-key": "header-secret-1"})
    assert KEY not in repr(config)
    assert "header-secret-1" not in repr(config)


def test_the_key_is_hidden_in_every_form_that_an_endpoint_may_echo():
    config = EndpointConfig(api_key=KEY + "/+", headers={"x-gate": "header-secret-1"})
    forms = [
        KEY + "/+",
        (KEY + "/+").encode().hex(),
        base64.b64encode((KEY + "/+").encode()).decode(),
        f"{KEY}%2F%2B",
        "header-secret-1",
    ]
    for form in forms:
        shown = config.veil(f"got {form}.")
        assert shown == "got [secret]."


def test_placeholder_key_is_not_redacted_from_messages():
    assert EndpointConfig(base_url="http://x/v1", api_key="x").veil("next to x") == "next to x"


@pytest.mark.parametrize("extra", [{"messages": []}, {"stream": False}])
def test_extra_body_may_not_take_over_the_request(extra: dict[str, object]):
    with pytest.raises(ConfigurationError, match="extra_body"):
        EndpointConfig(extra_body=extra)


def test_extra_body_must_be_sayable_in_json():
    with pytest.raises(ConfigurationError, match="JSON"):
        EndpointConfig(extra_body={"top_p": float("nan")})


@pytest.mark.parametrize(
    ("name", "value"), [("bad name", "x"), ("x-ok", "a\r\nevil: 1"), ("x-ok", "ä")]
)
def test_a_header_that_cannot_be_sent_is_refused(name: str, value: str):
    with pytest.raises(ConfigurationError, match=r"llm\.headers"):
        EndpointConfig(headers={name: value})


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Expect", "upgrade"])
def test_transport_header_is_refused(name: str):
    with pytest.raises(ConfigurationError, match=name):
        EndpointConfig(headers={name: "5"})


@pytest.mark.parametrize(
    ("model", "split"),
    [
        ("gpt-x", ("", "gpt-x")),
        ("openai:gpt-x", ("", "gpt-x")),
        ("llama3.1:8b", ("", "llama3.1:8b")),
        ("anthropic:claude-x", ("anthropic", "claude-x")),
        ("ollama:llama3.1:8b", ("ollama", "llama3.1:8b")),
    ],
)
def test_only_known_providers_are_split_off(model: str, split: tuple[str, str]):
    assert split_provider(model) == split
