"""Agent files of five formats are read into definitions and findings; no file widens its rights."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mimir.domain.agent import DEFAULT_TOOLS
from mimir.domain.agent_definition import AgentDefinition
from mimir.registry.discovery import PROJECT_PLACES, SearchPlace, find_agent_files
from mimir.registry.findings import AGENT_CODES
from mimir.registry.formats.agent_reader import read_agent_file
from mimir.registry.formats.key_tables import KEY_TABLES, PERMISSION_KEYS
from mimir.registry.tool_names import grant_tools, map_tool
from tests.support.agent_corpus import PROMPT, SAMPLES, Sample, front

QUIET = ("tools-default", "model-unmapped")
MISSPELT = [
    "allowedTools",
    "allowed-tools",
    "allowed_tools",
    "disallowedTools",
    "permission",
    "permissions",
    "permissionMode",
    "mcpServers",
    "mcp-servers",
    "hooks",
]


def write(project: Path, sample: Sample) -> None:
    data = sample.text if isinstance(sample.text, bytes) else sample.text.encode()
    for path, content in {sample.path: data, **(sample.beside or {})}.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def read_all(project: Path) -> Iterator[AgentDefinition]:
    for place in PROJECT_PLACES:
        where = SearchPlace(root=project, place=place, location="project", is_shown_relative=True)
        for file in find_agent_files([where]):
            found = read_agent_file(file)
            yield replace(found, source=replace(found.source, is_trusted=True))


def read_one(tmp_path: Path, sample: Sample) -> AgentDefinition:
    write(tmp_path, sample)
    own = sample.path.removesuffix("/config.yaml")
    own = own.removesuffix("/prompt.md") if "background" in own else own
    return next(one for one in read_all(tmp_path) if one.source.path == own)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_a_file_has_its_findings_and_no_other_tools(sample: Sample, tmp_path: Path):
    found = read_one(tmp_path, sample)

    codes = sorted(one.code for one in found.findings if one.code not in QUIET)
    assert tuple(codes) == sample.codes
    wanted = DEFAULT_TOOLS if sample.granted is None else sample.granted
    assert grant_tools(found).granted == tuple(sorted(wanted))
    assert all(one.line >= 1 and one.column >= 1 for one in found.findings)
    assert found.has_errors or found.prompt


def test_the_corpus_has_every_code(tmp_path: Path):
    for sample in SAMPLES:
        write(tmp_path, sample)

    counts = Counter(one.code for found in read_all(tmp_path) for one in found.findings)

    rare = {code for code in AGENT_CODES if counts[code] < 2}
    assert rare <= {"model-unmapped"}  # it depends on settings


@pytest.mark.parametrize("key", MISSPELT)
@pytest.mark.parametrize("format", KEY_TABLES)
def test_a_permission_key_of_another_format_grants_nothing(format: str, key: str, tmp_path: Path):
    table = KEY_TABLES[format]  # pyright: ignore[reportArgumentType]
    lines = ("name: one", "description: Reviews a change.", f"{key}: [Bash, Write]")
    paths = {
        "folder": ".agents/agents/one/prompt.md",
        "claude": ".claude/agents/one.md",
        "copilot": ".github/agents/one.md",
        "opencode": ".opencode/agents/one.md",
        "skill": ".agents/skills/set/agents/one/SKILL.md",
    }
    write(tmp_path, Sample(path=paths[format], text=front(*lines)))

    [found] = read_all(tmp_path)

    granted = grant_tools(found).granted
    if table.use_of(key) is None:
        assert "permission-key" in {one.code for one in found.findings}
        assert granted == ()
        error = next(one for one in found.findings if one.code == "permission-key")
        assert (error.line, error.column) == (4, 1)
    elif key != "allowed-tools":
        assert set(granted) <= set(DEFAULT_TOOLS)


def test_a_name_of_nearly_a_permission_key_is_an_error(tmp_path: Path):
    for key in PERMISSION_KEYS:
        for wrong in (key[:-1], key + "x", key.upper(), key[1:]):
            sample = Sample(
                path=".claude/agents/a.md", text=front("name: a", "description: d", f"{wrong}: x")
            )
            codes = {one.code for one in read_one(tmp_path, sample).findings}
            native = KEY_TABLES["claude"].use_of(wrong) is not None
            assert native or "permission-key" in codes, wrong


def test_a_mutated_file_never_gets_more_tools(tmp_path: Path):
    """Random damage of the front matter: no exception, and no tool beyond the request and the default set."""
    rng = random.Random(7)
    texts = [
        one.text for one in SAMPLES if isinstance(one.text, str) and one.text.startswith("---")
    ]
    keys = sorted({key for table in KEY_TABLES.values() for key in table.all})
    for _ in range(600):
        text = rng.choice(texts)
        damaged = _mutate(text, keys, rng)
        place = rng.choice((".claude/agents/m.md", ".github/agents/m.md", ".opencode/agent/m.md"))
        before = read_one(tmp_path, Sample(path=place, text=text))
        after = read_one(tmp_path, Sample(path=place, text=damaged))
        asked = {tool for name in after.tools.requested for tool in map_tool(name)}
        assert set(grant_tools(after).granted) <= {*DEFAULT_TOOLS, *asked}
        assert not (after.has_errors and grant_tools(after).granted)
        assert all(name in damaged.replace("\r", "") for name in after.tools.requested)
        # Damage beside the keys of permissions changes no right.
        if after.tools == before.tools and not before.has_errors:
            assert set(grant_tools(after).granted) <= set(grant_tools(before).granted)


def _mutate(text: str, keys: list[str], rng: random.Random) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    match rng.randrange(9):
        case 0:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines[at] = f"{rng.choice(keys)}: {lines[at].partition(':')[2]}"
        case 3:
            return text.replace("\n", "\r\n")
        case 4:
            return "\ufeff" + text
        case 5:
            lines[at] = lines[at].replace(":", rng.choice((": &a", ": *a", ": !!x", "", "::")), 1)
        case 6:
            del lines[at]
        case 7:
            lines[at] += rng.choice(("\t", "\x00", "#", " - ", "\u2028", "{", "]"))
        case _:
            lines.insert(1, f"{rng.choice(keys)}: [Read]")
    return "\n".join(lines)


def test_hostile_files_cost_little(tmp_path: Path):
    deep = "x: " + "[" * 5000
    for text in (
        front(deep),
        front("a: b\n" * 20_000),
        "---\n" + "k" * 1_100_000,
        front(f"{'k' * 60_000}: 1"),
    ):
        found = read_one(tmp_path, Sample(path=".claude/agents/h.md", text=text))
        assert found.has_errors
        assert all(len(one.message) < 400 for one in found.findings)


def test_links_are_not_followed(tmp_path: Path):
    outside = tmp_path / "outside.md"
    outside.write_text(front("name: out", f"description: {PROMPT}"))
    project = tmp_path / "project"
    (project / ".claude/agents").mkdir(parents=True)
    (project / ".claude/agents/out.md").symlink_to(outside)
    (project / ".github").symlink_to(tmp_path)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/out.md").write_text(outside.read_text())

    assert list(read_all(project)) == []


def test_the_document_lists_every_finding():
    document = (Path(__file__).resolve().parents[3] / "docs/agents.md").read_text(encoding="utf-8")
    for code, (severity, meaning) in AGENT_CODES.items():
        assert f"| `{code}` | {severity} | {meaning} |" in document
