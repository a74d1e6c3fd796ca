"""Options of `mimir invoke` for the arguments of a tool that spawns an agent."""

import re
from collections.abc import Mapping

from mimir.domain.json_value import as_texts

_LISTS = {
    "criteria": "--criterion",
    "checks": "--check",
    "files": "--files",
    "context_files": "--context-file",
}
_VALUES = {
    "model": "--model",
    "max_tool_calls": "--max-tool-calls",
    "timeout_seconds": "--timeout",
    "max_cost": "--max-cost",
    "mode": "--mode",
    "refines": "--refines",
}


def list_options(given: Mapping[str, object]) -> list[str]:
    """Return the options of `mimir invoke` for the arguments of a call."""
    words: list[str] = []
    for name, option in _LISTS.items():
        words += [f"{option}={one}" for one in as_texts(given.get(name))]
    for one in as_texts(given.get("expected_deliverables")):
        # A path has no white space; other words are judged.
        is_path = re.fullmatch(r"[^\s]*[./][^\s]*", one) is not None
        words.append(f"--{'deliverable' if is_path else 'criterion'}={one}")
    for name, option in _VALUES.items():
        if name in given:
            words.append(f"{option}={given[name]}")
    if "tools" in given:
        words.append(f"--tools={','.join(as_texts(given['tools']))}")
    return [*words, *(["--force"] if given.get("force") is True else [])]
