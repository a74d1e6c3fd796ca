"""The start environment of every test: no keys, no settings of the user, a home of its own."""

import os
import secrets
from collections.abc import MutableMapping
from pathlib import Path

FOREIGN_PREFIXES = (
    "ANTHROPIC_",
    "AZURE_OPENAI_",
    "GIT_",
    "LANGCHAIN_",
    "LANGGRAPH_",
    "LANGSMITH_",
    "MIMIR_",
    "NEO4J_",
    "OPENAI_",
    "XDG_",
)
"""Variables with these prefixes change the behaviour of the product, its libraries or git."""
FOREIGN = (
    "ALL_PROXY",
    "COLUMNS",
    "EDITOR",
    "FORCE_COLOR",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LINES",
    "MAKEFLAGS",
    "NO_COLOR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "VISUAL",
    "all_proxy",
    "http_proxy",
    "https_proxy",
)

NEO4J_GIVEN, NEO4J_REQUIRED, NEO4J_SESSION = (
    "TESTS_NEO4J_URI",
    "TESTS_NEO4J_REQUIRED",
    "TESTS_NEO4J_SESSION",
)
"""Variables that outlive the isolation of the environment, for the workers of this session."""

MODEL_BOUNDS = "TESTS_MODEL_BOUNDS"
"""`200x50`: histories and steps of the comparison of each store with the simplest graph; set as MIMIR_TEST_MODEL."""

TRUST_SIZE = "TESTS_TRUST_SIZE"
"""How hard the batteries of tests/trust try: small, ci or full; set as MIMIR_TEST_TRUST."""

WRITE_GOLDEN = "TESTS_WRITE_GOLDEN"
"""`1`: tests/golden writes its golden files instead of comparing them; set as MIMIR_WRITE_GOLDEN."""

GIT_CONFIG = """\
[user]
\tname = mimir tests
\temail = tests@mimir.invalid
[init]
\tdefaultBranch = main
[commit]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def isolate(environ: MutableMapping[str, str], home: Path) -> None:
    """Remove the settings of this machine's user from `environ`, and set an empty home.

    Git gets an identity of its own, and reads no configuration but that and a repository's.
    """
    for name in list(environ):
        if name in FOREIGN or name.startswith(FOREIGN_PREFIXES):
            del environ[name]
    config = home / ".gitconfig"
    config.write_text(GIT_CONFIG, encoding="utf-8")
    environ["HOME"] = str(home)
    environ["GIT_CONFIG_GLOBAL"] = str(config)
    environ["GIT_CONFIG_NOSYSTEM"] = "1"
    environ["GIT_TERMINAL_PROMPT"] = "0"
    environ["LC_ALL"] = "C.UTF-8"


def isolate_this_process(home: Path) -> None:
    """Isolate this process and all that it starts."""
    isolate(os.environ, home)


def remember_environment() -> None:
    """Save the user's values before the environment is isolated."""
    env = os.environ
    for name, kept in (
        ("MIMIR_TEST_NEO4J_URI", NEO4J_GIVEN),
        ("MIMIR_REQUIRE_NEO4J", NEO4J_REQUIRED),
        ("MIMIR_TEST_TRUST", TRUST_SIZE),
        ("MIMIR_WRITE_GOLDEN", WRITE_GOLDEN),
    ):
        if env.get(name):
            env[kept] = env[name]
    if env.get("CI") == "true":
        env[NEO4J_REQUIRED] = "1"
    env.setdefault(NEO4J_SESSION, secrets.token_hex(4))
