"""Agent files of all formats, each with the findings that it must have."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.agent import MEMORY_TOOLS

PROMPT = "Read the changed files and report each fault with its line."


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One file of the corpus."""

    path: str
    text: str | bytes
    codes: tuple[str, ...] = ()
    """Codes of the findings, sorted; notes on default tools and models are left out."""
    granted: tuple[str, ...] | None = None
    """Tools of the trusted definition; None: the default set."""
    beside: Mapping[str, str] | None = None
    """Further files of its folder."""


def front(*lines: str, prompt: str = PROMPT) -> str:
    return "\n".join(["---", *lines, "---", "", prompt, ""])


def claude(name: str, *lines: str, prompt: str = PROMPT) -> str:
    return front(f"name: {name}", "description: Reviews a change.", *lines, prompt=prompt)


def answer(analysis: str, **more: object) -> str:
    """Return an answer in the response form."""
    metadata = {"confidence_level": "high", "task_completion_status": "complete"}
    return json.dumps({"deliverables": {"analysis": analysis}, "metadata": metadata, **more})


READ = ("grep", "list_files", "read_file")
WRITE = ("delete_file", "edit_file", "write_file")
_NEXT = iter(range(1000))


def _claude(
    *lines: str, codes: tuple[str, ...] = (), granted: tuple[str, ...] | None = None
) -> Sample:
    name = f"agent-{next(_NEXT)}"
    text = claude(name, *lines)
    return Sample(path=f".claude/agents/{name}.md", text=text, codes=codes, granted=granted)


def _folder(
    name: str,
    config: str,
    *,
    codes: tuple[str, ...] = (),
    granted: tuple[str, ...] | None = None,
    prompt: str = PROMPT,
    beside: Mapping[str, str] | None = None,
) -> Sample:
    files = {f".agents/agents/{name}/prompt.md": prompt, **(beside or {})}
    return Sample(
        path=f".agents/agents/{name}/config.yaml",
        text=config,
        codes=codes,
        granted=granted,
        beside=files,
    )


SCHEMA = "output_format:\n  type: json_schema\n  schema:\n"
BASE = 'description: "Reviews a change."\n'

SAMPLES: tuple[Sample, ...] = (
    # claude
    _claude("tools: Read, Grep", granted=READ),
    _claude("tools: [Read, Edit]", granted=(*WRITE, "read_file")),
    _claude(
        "tools: Bash(git log:*, git diff:*), Read",
        codes=("tool-pattern",),
        granted=("read_file", "run"),
    ),
    _claude("tools: Read, Teleport", codes=("tool-unmapped",), granted=("read_file",)),
    _claude("tools: []", granted=()),
    _claude("tools: Read, Task, WebFetch", granted=("read_file",)),
    _claude("disallowedTools: Grep, memory", granted=("read_artifact", "read_file")),
    _claude("tools: Read, Write, Bash", "permissionMode: plan", granted=("read_file",)),
    _claude("permissionMode: bypassPermissions", codes=("refused-key",)),
    _claude("permissionMode: acceptEdits", codes=("unsupported-key",)),
    _claude("mcpServers: [github]", "hooks: {}", codes=("refused-key", "refused-key")),
    _claude("color: red", "memory: user", codes=("unsupported-key", "unsupported-key")),
    _claude("allowedTools: Read", codes=("permission-key",), granted=()),
    _claude("allowed-tools: Read", codes=("permission-key",), granted=()),
    _claude("tool: Read", codes=("permission-key",), granted=()),
    _claude("permissions: {edit: allow}", codes=("permission-key",), granted=()),
    _claude("mcp-servers: [x]", codes=("permission-key",), granted=()),
    _claude("version: 3", codes=("unknown-key",)),
    _claude("maxTurns: many", codes=("invalid-value",), granted=()),
    _claude("tools: {Read: true}", codes=("invalid-value",), granted=()),
    _claude("tools: Read", "tools: Bash", codes=("duplicate-key",), granted=()),
    _claude("model: opus", "maxTurns: 30", "skills: [review]"),
    _claude("tools: *", codes=("front-matter-colon",)),
    _claude("tools: Read Grep Bash", granted=(*READ, "run")),
    _claude("tools: Read; run_shell_command", granted=("read_file", "run")),
    _claude("tools: all but Bash", codes=("tool-unmapped",), granted=()),
    *(
        Sample(
            path=f".claude/agents/text-{number}.md",
            text=front(f"name: text-{number}", f"description: {text}", "tools: Read"),
            codes=("front-matter-colon",),
            granted=("read_file",),
        )
        for number, text in enumerate(
            (
                "[Internal] Reviews",
                "{team} reviewer",
                "> 80% of lines",
                "| a | b",
                "- lists",
                "'It's a reviewer'",
                '"Say "yes" to it"',
                r'"Finds \d+"',
                '"Quoted" at first',
                "Reviews.\n\n  user: fix: it\n  - Reasoning: (no)",
            )
        )
    ),
    *(
        Sample(
            path=f".claude/agents/rule-{number}.md",
            text=claude(f"rule-{number}", "tools: Read")
            .replace("---", rule, 1)
            .replace("\n---\n", f"\n{end}\n"),
            granted=("read_file",),
        )
        for number, (rule, end) in enumerate(
            (("\n\n---", "---"), ("-----", "-----"), ("---", "------"))
        )
    ),
    Sample(
        path=".github/agents/fence.agent.md",
        text=f"```chatagent\n{front('description: d', 'tools: [read]')}```\n",
        granted=("read_file",),
    ),
    Sample(path=".claude/agents/team/inner.md", text=claude("inner")),
    Sample(
        path=".claude/agents/windows.md",
        text=b"\xef\xbb\xbf" + claude("windows", "tools: Read").replace("\n", "\r\n").encode(),
        granted=("read_file",),
    ),
    Sample(
        path=".claude/agents/latin.md",
        text=claude("latin").encode() + b"caf\xe9",
        codes=("file-unreadable",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/nul.md",
        text=claude("nul") + "\0",
        codes=("file-unreadable",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/plain.md", text=PROMPT, codes=("front-matter-missing",), granted=()
    ),
    Sample(
        path=".claude/agents/open.md",
        text="---\nname: open\ndescription: x\n",
        codes=("front-matter-unclosed",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/list.md",
        text=front("- name", "- description"),
        codes=("front-matter-yaml",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/alias.md",
        text=front("name: &a alias", "description: *a"),
        codes=("front-matter-yaml",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/tag.md",
        text=front("name: tag", "description: !!python/object:os.system x"),
        codes=("front-matter-yaml",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/colon.md",
        text=front("name: colon", 'description: Use it so. Example: user: "fix it"', "tools: Read"),
        codes=("front-matter-colon",),
        granted=("read_file",),
    ),
    Sample(
        path=".claude/agents/examples.md",
        text=front(
            "description: Use it so: then",
            'user: "fix it"',
            'user: "a: b"',
            "",
            "name: examples",
            "tools: Read",
        ),
        codes=("front-matter-colon",),
        granted=("read_file",),
    ),
    # Nearly a key of permissions within the description: the file stays refused.
    Sample(
        path=".claude/agents/inner.md",
        text=front("description: Use it so: fix it", "user: a: b", "  tool: [Read]", "name: inner"),
        codes=("front-matter-yaml",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/colons.md",
        text=front("name: a: b", "description: c: d"),
        codes=("front-matter-colon", "front-matter-colon", "invalid-name"),
    ),
    Sample(
        path=".claude/agents/nameless.md",
        text=front("description: No name."),
        codes=("invalid-name",),
    ),
    Sample(
        path=".claude/agents/silent.md",
        text=front("name: silent"),
        codes=("description-missing",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/short.md",
        text=claude("short", prompt="Review."),
        codes=("prompt-empty",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/long.md",
        text=front("name: long", f"description: {'word ' * 300}", prompt="word " * 7000),
        codes=("description-long", "prompt-long"),
    ),
    Sample(
        path=".claude/agents/agent.ts", text="export default {}", codes=("code-agent",), granted=()
    ),
    Sample(
        path=".claude/agents/tiny.md",
        text=claude("tiny", "tools: Ouija", prompt="?"),
        codes=("prompt-empty", "tool-unmapped"),
        granted=(),
    ),
    Sample(
        path=".claude/agents/opened.md",
        text="---\nname: x\n",
        codes=("front-matter-unclosed",),
        granted=(),
    ),
    Sample(
        path=".claude/agents/wordy.md",
        text=front("name: wordy", f"description: {'w' * 1025}", prompt="p" * 30_001),
        codes=("description-long", "prompt-long"),
    ),
    # copilot
    Sample(
        path=".github/agents/planner.agent.md",
        text=front("description: Plans work.", "tools: ['search', 'edit/editFiles']"),
        granted=(*WRITE[:2], "grep", "list_files", "write_file"),
    ),
    Sample(
        path=".github/agents/expert.md",
        text=front(
            "name: 'API Expert'",
            "description: Knows APIs.",
            "model: [gpt-5, 'Claude Sonnet 4']",
            "handoffs: []",
        ),
        codes=("invalid-name", "unsupported-key"),
    ),
    Sample(
        path=".github/agents/hooked.agent.md",
        text=front("description: x y", "hooks: {}", "permission: {}"),
        codes=("permission-key", "refused-key"),
        granted=(),
    ),
    Sample(
        path=".github/agents/quiet.agent.md",
        text=front("tools: [read]"),
        codes=("description-missing",),
        granted=("read_file",),
    ),
    Sample(
        path=".github/chatmodes/ask.chatmode.md",
        text="# Ask\n\nAnswer questions about this code.",
        codes=("front-matter-missing",),
    ),
    Sample(
        path=".github/chatmodes/edit.chatmode.md",
        text=front("description: Edits.", "mode: agent", "tools: [editFiles]"),
        codes=("unsupported-key",),
        granted=WRITE,
    ),
    # opencode
    *(
        Sample(
            path=f".opencode/agents/form-{number}.md",
            text=front("description: d", *lines),
            codes=codes,
            granted=granted,
        )
        for number, (lines, codes, granted) in enumerate(
            (
                (("tools: [read, bash]",), (), ("read_file", "run")),
                (("tools: []",), (), ()),
                (("tools: {read: True, bash: yes, grep: off}",), (), ("read_file", "run")),
                (("permission: allow", "temperature: .5"), (), None),
                (("permission: deny",), (), ()),
                (("permission: {read: Allow, bash: true}",), ("unsupported-key",), ("read_file",)),
                (("permission: [read]",), ("invalid-value", "unsupported-key"), ()),
            )
        )
    ),
    Sample(
        path=".opencode/agent/review.md",
        text=front(
            "description: Reviews.",
            "mode: subagent",
            "temperature: 0.1",
            "tools:",
            "  write: false",
            "  edit: false",
        ),
    ),
    Sample(
        path=".opencode/agents/build.md",
        text=front(
            "description: Builds.", "tools: {read: true, bash: true}", "permission: {bash: deny}"
        ),
        granted=("read_file",),
    ),
    Sample(
        path=".opencode/agents/careful.md",
        text=front(
            "description: Careful.",
            "permission:",
            "  edit: ask",
            "  bash: {'git *': allow, '*': ask}",
        ),
        codes=("unsupported-key", "unsupported-key"),
    ),
    Sample(
        path=".opencode/agents/hot.md",
        text=front("description: Hot.", "temperature: warm", "allowedTools: [read]"),
        codes=("invalid-value", "permission-key"),
        granted=(),
    ),
    # skill
    Sample(
        path=".agents/skills/sdd/agents/validator/SKILL.md",
        text=front("name: validator", "description: Validates.", "allowed-tools: Read Bash(git:*)"),
        codes=("tool-pattern",),
        granted=("read_file", "run"),
    ),
    Sample(
        path=".agents/skills/sdd/agents/oracle/SKILL.md",
        text=front("name: The Oracle", "description: Advises."),
        codes=("invalid-name", "name-mismatch"),
        granted=(),
    ),
    Sample(
        path=".agents/skills/sdd/agents/tools/SKILL.md",
        text=front("name: tools", "description: Tools.", "hooks: {}", "argument-hint: x"),
        codes=("permission-key", "unknown-key"),
        granted=(),
    ),
    # folder
    _folder("reviewer", BASE + "tools: [Read]\nmax_tool_calls: 40\n", granted=("read_file",)),
    _folder("writer", BASE + "name: author\n", codes=("name-mismatch",), granted=()),
    _folder("coder", BASE + "type: cli\nprogram: claude\n", granted=()),
    _folder(
        "hacker",
        BASE + "type: cli\nprogram: /bin/sh -c id\n",
        codes=("program-in-file",),
        granted=(),
    ),
    _folder(
        "shell", BASE + "type: cli\nprogram: ./run.sh\n", codes=("program-in-file",), granted=()
    ),
    _folder(
        "runner",
        BASE,
        codes=("refused-key",),
        beside={".agents/agents/runner/runner.py": "print(1)\n"},
    ),
    _folder(
        "strange",
        BASE + "colour: red\npermissions: all\n",
        codes=("permission-key", "unknown-key"),
        granted=(),
    ),
    _folder("outside", BASE + "files: ['../**']\n", codes=("invalid-value",), granted=()),
    _folder("twice", BASE, prompt=front("name: twice"), codes=("duplicate-key",), granted=()),
    _folder(
        "answer",
        BASE + SCHEMA + "    type: object\n    properties: {a: {type: integer, maximum: 3}}\n",
    ),
    _folder(
        "remote",
        BASE + SCHEMA + "    $ref: https://example.com/s.json\n",
        codes=("schema-refused",),
        granted=(),
    ),
    _folder(
        "deep",
        BASE + SCHEMA + "    " + "{a: " * 11 + "{}" + "}" * 11 + "\n",
        codes=("schema-refused",),
        granted=(),
    ),
    _folder("code", BASE, codes=(), beside={".opencode/agent/tool.py": "x = 1\n"}),
    Sample(
        path=".claude/agents/background/keeper/prompt.md",
        text=front("description: Keeps.", "tools: [memory]"),
        granted=MEMORY_TOOLS,
    ),
)
