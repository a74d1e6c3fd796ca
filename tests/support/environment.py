"""The environment that every test starts in: nobody's keys, nobody's settings, a home of its own."""

import os
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
"""Variables with these prefixes change what the product, its libraries or git do."""
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
"""


def isolate(environ: MutableMapping[str, str], home: Path) -> None:
    """Take out of `environ` what belongs to the person at this machine, and give it an empty home.

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
