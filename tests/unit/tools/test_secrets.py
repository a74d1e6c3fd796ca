"""No form of a secret passes, and nothing else changes."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimir.tools.secrets import Redactor

CANARY = "zq7!Canary/Value+42=x"
KEY = "\n".join(
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        *["MIIEowIBAAKCAQEA7b" * 3] * 4,
        "-----END RSA PRIVATE KEY-----",
    ]
)


def wrapped(text: str, width: int = 10) -> str:
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


FORMS = {
    "raw": CANARY,
    "in a word": f"x{CANARY}y",
    "json": json.dumps({"key": CANARY}),
    "url": quote(CANARY, safe=""),
    "url, slashes kept": quote(CANARY),
    "url, lower case": quote(CANARY, safe="")
    .lower()
    .replace("canary", "Canary")
    .replace("value", "Value"),
    "form": quote_plus(CANARY),
    "hex": CANARY.encode().hex(),
    "hex, upper case": CANARY.encode().hex().upper(),
    "hex, in lines": wrapped(CANARY.encode().hex()),
    "base64": base64.b64encode(CANARY.encode()).decode(),
    "base64 at 1": base64.b64encode(b"a" + CANARY.encode() + b"tail").decode(),
    "base64 at 2": base64.b64encode(b"ab" + CANARY.encode() + b"t").decode(),
    "base64 of urls": base64.urlsafe_b64encode(b"ab" + CANARY.encode()).decode(),
    "base64, in lines": wrapped(base64.b64encode(b"abcd" + CANARY.encode()).decode()),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_known_value_is_replaced_in_every_form(form: str):
    said = Redactor([CANARY])(f"before {form} after")
    assert "[redacted:secret]" in said
    assert said.startswith("before")
    assert said.endswith("after")
    assert "Canary" not in said
    assert "Canary" not in base64_read(said)


def base64_read(text: str) -> str:
    words = [w for w in text.replace("\n", "").replace("[", " ").split() if len(w) >= 8]
    return "".join(
        base64.b64decode(word[: len(word) // 4 * 4], altchars=b"-_", validate=False).decode(
            "latin-1"
        )
        for word in words
        if word.isascii() and word.isalnum()
    )


PATTERNS = {
    "an OpenAI key": ("sk-proj-abc123def456ghi789jkl", "api-key"),
    "an old OpenAI key": ("sk-T3BlbkFJ0123456789abcdef", "api-key"),
    "a GitHub token": ("ghp_" + "a1B2" * 9, "token"),
    "a fine-grained GitHub token": ("github_pat_" + "a1B2_" * 6, "token"),
    "a GitLab token": ("glpat-" + "x9_Y" * 6, "token"),
    "an AWS key": ("AKIAIOSFODNN7EXAMPLE", "api-key"),
    "a Google key": ("AIza" + "a1-_b" * 7, "api-key"),
    "a Slack token": ("xoxb-123456789012-abcdef", "token"),
    "a JWT": ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "token"),
    "a private key": (KEY, "private-key"),
    "a private key as JSON": (json.dumps(KEY)[1:-1], "private-key"),
    "a private key without its end": (KEY.rsplit("\n", 1)[0], "private-key"),
}


@pytest.mark.parametrize(("secret", "kind"), PATTERNS.values(), ids=PATTERNS)
def test_keys_and_tokens_are_found_by_their_look(secret: str, kind: str):
    said = Redactor()(f'token = "{secret}"\nnext line')
    assert f"[redacted:{kind}]" in said
    assert secret not in said
    assert said.endswith("next line")


IN_PLACE = {
    "bearer": (
        "Authorization: Bearer abcDEF123456ghiJKL",
        "Authorization: Bearer [redacted:token]",
    ),
    "basic": ("authorization: basic dXNlcjpwYXNzd29yZA==", "authorization: basic [redacted:token]"),
    "url": ("postgres://bob:hunter2@db/x", "postgres://bob:[redacted:password]@db/x"),
    "env file": ("DB_PASSWORD=correct-horse", "DB_PASSWORD=[redacted:secret]"),
    "export": (
        "export STRIPE_SECRET_KEY='abcd1234efgh'",
        "export STRIPE_SECRET_KEY='[redacted:secret]'",
    ),
    "diff": ("+API_KEY=abcd1234efgh", "+API_KEY=[redacted:secret]"),
}


@pytest.mark.parametrize(("text", "wanted"), IN_PLACE.values(), ids=IN_PLACE)
def test_what_stands_around_a_secret_stays(text: str, wanted: str):
    assert Redactor()(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens = 4000",
        "token = tokenizer.next()",
        "API_KEY=os.environ['API_KEY']",
        "TOKEN=$(cat token)",
        "the risk-averse sk-learn of sk-fading-circle",
        "bearer of bad news",
        "http://localhost:8080/path@2x.png",
        "git@github.com:a/b.git and a:b@c",
        'if "-----BEGIN PRIVATE KEY-----" in text:\n    return True\n',
        "MIIEowIBAAKCAQEA is a base64 start",
        "AKIA is too short",
        "3 passed in 0.12s",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str):
    assert Redactor(["a-known-secret-value"])(text) == text


def test_short_values_are_replaced_only_as_words_of_their_own():
    redact = Redactor(["pass", "abc"])
    assert (
        redact("2 passed, pass, bypass pass.")
        == "2 passed, [redacted:secret], bypass [redacted:secret]."
    )
    assert redact("abc") == "abc"


def test_the_last_lines_of_a_private_key_are_replaced_too():
    tail = "\n".join(KEY.split("\n")[2:])
    said = Redactor()(f"shown:\n{tail}\nend")
    assert said == "shown:\n[redacted:private-key]\n\n\n\nend"


def test_line_numbers_stay_true():
    text = f"1\n{KEY}\nlast"
    assert Redactor()(text).count("\n") == text.count("\n")
    assert Redactor([KEY])(text).count("\n") == text.count("\n")


def test_a_secret_that_touches_another_one_is_replaced_too():
    google = "AIza" + "a1-_b" * 7
    said = Redactor()(f"{google}sk-proj-abc123def456ghi789jkl")
    assert said == "[redacted:api-key][redacted:api-key]"


@pytest.mark.parametrize("word", ["password", "redacted", "api-key", "[redacted:secret]"])
def test_a_known_value_that_stands_in_a_mark_is_replaced_once(word: str):
    redact = Redactor([word])
    assert redact(f"is {word}, and db://u:hunter2@h") == (
        "is [redacted:secret], and db://u:[redacted:password]@h"
    )


@given(
    st.lists(
        st.one_of(
            st.sampled_from([CANARY, KEY, *FORMS.values(), *(p[0] for p in PATTERNS.values())]),
            st.sampled_from([t for t, _ in IN_PLACE.values()]),
            st.text(max_size=20),
        ),
        max_size=6,
    ),
    st.sampled_from(["", " ", "\n", '"', "://", "@"]),
)
def test_doing_it_twice_changes_nothing_more(pieces: list[str], between: str):
    redact = Redactor([CANARY, "pass"])
    once = redact(between.join(pieces))
    assert redact(once) == once
    assert CANARY not in once


@given(st.text(min_size=8, max_size=40).filter(lambda s: len(s.strip()) >= 8), st.text(max_size=40))
def test_no_known_value_ever_passes(secret: str, around: str):
    said = Redactor([secret])(f"{around}{secret}{around}")
    if secret.strip() not in "[redacted:secret]" and secret.strip() not in around:
        assert secret.strip() not in said.replace("[redacted:secret]", "\0")


HOSTILE = {
    "schemes": "a" * 200_000,
    "urls": "aa://a" * 40_000,
    "keys": "sk-" * 70_000,
    "jwt": "eyJaaaaaaaa" * 20_000,
    "headers": "-----BEGIN PRIVATE KEY-----" * 8_000,
    "key lines": ("A" * 64 + "\n") * 3_000 + "-----END PRIVATE KEY-----",
    "names": "A_" * 100_000,
    "bearers": "bearer " * 30_000,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_ends(text: str):
    """A pattern that is quadratic in the text needs minutes here."""
    said = Redactor([CANARY])(text)
    assert said.count("\n") == text.count("\n")
