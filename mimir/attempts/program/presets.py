"""Shipped presets of programs. Pure."""

from collections.abc import Mapping

from mimir.domain.program import ProgramPreset

_PRESETS = (
    ProgramPreset(
        name="claude",
        command=(
            *("claude", "--print", "--output-format", "json", "--model", "{model}"),
            *("--permission-mode", "acceptEdits", "--append-system-prompt", "{prompt}"),
        ),
        output="claude",
        environment=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        network=True,
        home=(".claude", ".claude.json"),
        version_command=("claude", "--version"),
    ),
    ProgramPreset(
        name="codex",
        command=(
            *("codex", "exec", "--json", "--sandbox", "workspace-write"),
            *("--skip-git-repo-check", "--model", "{model}", "-"),
        ),
        output="codex",
        environment=("OPENAI_API_KEY", "CODEX_API_KEY"),
        network=True,
        home=(".codex",),
        version_command=("codex", "--version"),
    ),
    ProgramPreset(
        name="gemini",
        command=(
            *("gemini", "--output-format", "json", "--approval-mode", "auto_edit"),
            *("--model", "{model}", "-p", "{task}"),
        ),
        prompt="flag",
        output="gemini",
        environment=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        network=True,
        home=(".gemini",),
        version_command=("gemini", "--version"),
    ),
    ProgramPreset(
        name="opencode",
        command=("opencode", "run", "--format", "json", "--model", "{model}", "{task}"),
        prompt="argument",
        output="opencode",
        environment=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY"),
        network=True,
        home=(".config/opencode", ".local/share/opencode"),
        version_command=("opencode", "--version"),
    ),
)
PROGRAM_PRESETS: Mapping[str, ProgramPreset] = {one.name: one for one in _PRESETS}
