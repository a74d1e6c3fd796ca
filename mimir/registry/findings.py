"""Codes of the findings of agent files. Pure."""

from collections.abc import Mapping

from mimir.domain.finding import START, Finding, Severity, SourcePosition

AGENT_CODES: Mapping[str, tuple[Severity, str]] = {
    "front-matter-missing": ("error", "no front matter, and the format needs it"),
    "front-matter-unclosed": ("error", "front matter without its closing `---`"),
    "front-matter-yaml": ("error", "front matter that is not a YAML map, or is too long"),
    "front-matter-colon": (
        "warning",
        "a text that YAML cannot read, such as an unquoted `: `, which is repaired; a description then ends at the next key",
    ),
    "duplicate-key": ("error", "a key that occurs twice"),
    "permission-key": ("error", "nearly a key of permissions, but not one of this format"),
    "unknown-key": ("warning", "a key that the format does not define; an error in `folder`"),
    "unsupported-key": ("note", "a key or value of the format that mimir does not use"),
    "refused-key": ("warning", "a key or file that mimir never obeys"),
    "invalid-name": ("warning", "a name of other signs than a-z, 0-9 and `-`; an error in `skill`"),
    "name-mismatch": ("error", "a name that differs from its folder; a warning in `skill`"),
    "description-missing": ("error", "no description"),
    "description-long": ("warning", "a description of more than 1,024 characters"),
    "prompt-empty": ("error", "a prompt of fewer than 20 characters"),
    "prompt-long": ("warning", "a prompt of more than 30,000 characters"),
    "tool-unmapped": ("note", "a requested tool that mimir does not have; it is not granted"),
    "tool-pattern": ("note", "a pattern of a tool, which is not enforced"),
    "tools-default": ("note", "no tools named; the default set applies"),
    "model-unmapped": ("note", "a model without an entry in `agents.models`"),
    "code-agent": ("error", "an agent file that is code; mimir runs no code of a project"),
    "program-in-file": ("error", "a path or command in `program`, which names a preset"),
    "invalid-value": ("error", "a value of the wrong type or out of its bounds"),
    "schema-refused": ("error", "an answer schema with a remote reference, too long or too deep"),
    "file-unreadable": ("error", "a file that is not UTF-8 text, too large, or cannot be opened"),
}
"""Code → usual severity and meaning. Codes are stable: scripts rely on them."""


def make_agent_finding(
    code: str,
    message: str,
    at: SourcePosition = START,
    suggestion: str = "",
    severity: Severity | None = None,
) -> Finding:
    """Return a finding of a known code, on one line; `severity` replaces the usual one."""
    return Finding(
        code=code,
        severity=severity or AGENT_CODES[code][0],
        line=at.line,
        column=at.column,
        message=" ".join(message.split()),
        suggestion=" ".join(suggestion.split()),
    )
