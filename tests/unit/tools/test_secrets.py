"""No form of a secret passes, and nothing else changes."""

import base64
import json
import subprocess
from collections.abc import Sequence
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


DUMPS = {
    "od -tx1": ["od", "-tx1"],
    "od -An -tx1": ["od", "-An", "-tx1"],
    "od -x": ["od", "-x"],
    "od -An -tx4": ["od", "-An", "-tx4"],
    "od -b": ["od", "-b"],
    "od -c": ["od", "-c"],
    "od -tu1": ["od", "-An", "-tu1"],
    "od -tx1z": ["od", "-tx1z"],
    "fold": ["fold", "-w", "5"],
    "rev": ["rev"],
    "characters apart": ["sed", "s/./& /g"],
    "numbered lines": ["sh", "-c", "fold -w 7 | cat -n"],
    "folded base64": ["sh", "-c", "base64 -w 9 | sed 's/^/    /'"],
}
ODD = "odd length, 0123456789 and blanks;"


@pytest.mark.parametrize("command", DUMPS.values(), ids=DUMPS)
def test_a_known_value_is_replaced_in_the_output_of_a_tool(command: Sequence[str]):
    for before in range(3):
        for value in (CANARY, ODD):
            given = f"{'x' * before}KEY={value}\nand more text of the same file\n"
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
            said = Redactor([CANARY, ODD])(f"first\n{done.stdout}last\n")
            assert "[redacted:secret]" in said, done.stdout
            assert said.startswith("first\n")
            assert said.endswith("last\n")
            assert said.count("\n") == done.stdout.count("\n") + 2


@pytest.mark.parametrize(
    "dump",
    [
        "00000000  6b 65 79 3d 7a 71 37 21  43 61 6e 61 72 79 2f 56  |key=zq7!Canary/V|\n"
        "00000010  61 6c 75 65 2b 34 32 3d  78 0a                    |alue+42=x.|\n0000001a\n",
        "00000000: 6b65 793d 7a71 3721 4361 6e61 7279 2f56  key=zq7!Canary/V\n"
        "00000010: 616c 7565 2b34 323d 780a                 alue+42=x.\n",
        ":".join(f"{byte:02x}" for byte in CANARY.encode()),
        ", ".join(f"0x{byte:02X}" for byte in CANARY.encode()),
        str(list(CANARY.encode())),
        "".join(f"\\x{byte:02x} " for byte in CANARY.encode()),
    ],
    ids=["hexdump -C", "xxd", "colons", "C", "Python", "escapes"],
)
def test_a_dump_of_a_known_value_is_replaced(dump: str):
    said = Redactor([CANARY])(f"first\n{dump}\nlast")
    assert [line for line in said.split("\n") if line][:2] == ["first", "[redacted:secret]"]
    assert "Canary" not in said
    assert "alue" not in said
    assert said.count("\n") == dump.count("\n") + 2


@pytest.mark.parametrize("around", ["", "7a 71 37 21\n", "0000000 61 62 63\n"])
def test_other_dumps_stay_as_they_are(around: str):
    text = f"{around}0000000 68 65 6c 6c 6f 20 77 6f 72 6c 64\n0000013\nplain text\n"
    assert Redactor([CANARY])(text) == text


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
def test_keys_and_tokens_are_found_by_their_form(secret: str, kind: str):
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
def test_text_around_a_secret_is_kept(text: str, wanted: str):
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


def test_line_numbers_refer_to_the_document():
    text = f"1\n{KEY}\nlast"
    assert Redactor()(text).count("\n") == text.count("\n")
    assert Redactor([KEY])(text).count("\n") == text.count("\n")


def test_a_secret_that_touches_another_one_is_replaced_too():
    google = "AIza" + "a1-_b" * 7
    said = Redactor()(f"{google}sk-proj-abc123def456ghi789jkl")
    assert said == "[redacted:api-key][redacted:api-key]"


@pytest.mark.parametrize("word", ["password", "redacted", "api-key", "[redacted:secret]"])
def test_known_value_inside_a_redaction_mark_is_replaced_once(word: str):
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
def test_redaction_is_idempotent(pieces: list[str], between: str):
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


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_parsed_in_bounded_time(text: str):
    """A pattern that is quadratic in the text needs minutes here."""
    said = Redactor([CANARY])(text)
    assert said.count("\n") == text.count("\n")
