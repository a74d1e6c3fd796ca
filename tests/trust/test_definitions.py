"""Damaged agent files: no damage to the front matter of a file adds a tool."""

import random
from collections.abc import Iterator
from functools import cache

import pytest

from mimir.domain.agent import DEFAULT_TOOLS
from mimir.domain.agent_definition import AgentDefinition, AgentFormat
from mimir.registry.formats.agent_reader import MAX_BYTES, AgentFile, read_agent_file
from mimir.registry.formats.key_tables import KEY_TABLES
from mimir.registry.tool_names import grant_tools, map_tool

FORMATS: tuple[AgentFormat, ...] = ("claude", "copilot", "opencode", "skill", "folder")
REQUESTS: dict[AgentFormat, tuple[str, ...]] = {
    "claude": (
        "tools: Read",
        "tools: [Read, Bash(git:*)]",
        "disallowedTools: Bash, Write",
        "permissionMode: plan",
        "tools: Read, Write, Bash\npermissionMode: plan",
        "tools: Bash\ndisallowedTools: [Bash]",
    ),
    "copilot": ("tools: ['search', 'edit/editFiles']", "tools: [read]", "tools: []"),
    "opencode": (
        "tools: {read: true, bash: true}\npermission: {bash: deny}",
        "permission: {edit: ask, bash: deny}",
        "tools:\n  write: false\n  bash: true",
    ),
    "skill": ("allowed-tools: Read Grep", "allowed-tools: Read", "tools: [Read]"),
    "folder": ("tools: [Read]", "tools: [Bash]\ndeny_tools: [Bash]", "deny_tools: [Grep]"),
}
EXTRAS = (
    "",
    "model: sonnet",
    "description: Use it so. Example: fix it",
    "license: MIT",
    "color: red",
)
KINDS = (
    "misspelt",
    "doubled",
    "renamed",
    "unclosed",
    "crlf",
    "bom",
    "latin",
    "large",
    "alias",
    "anchor",
)


@cache
def fronts() -> tuple[tuple[AgentFormat, str, frozenset[str]], ...]:
    """Return 300 front matters with their grants: requests of each format, and further keys."""
    made = [*make_fronts()]
    return tuple(
        (f, text, frozenset(grant_tools(read(f, text.encode())).granted)) for f, text in made
    )


def make_fronts() -> Iterator[tuple[AgentFormat, str]]:
    rng = random.Random(11)
    for number in range(300):
        format = FORMATS[number % len(FORMATS)]
        lines = ["name: one", "description: Reviews a change."]
        extra = rng.choice(EXTRAS)
        if extra.startswith("description"):
            lines.pop()
        lines += [line for line in (rng.choice(REQUESTS[format]), extra) if line]
        yield format, "---\n" + "\n".join(lines) + "\n---\n\nRead the changed files, then report.\n"


def damage(format: AgentFormat, text: str, kind: str, rng: random.Random) -> bytes:
    """Return a front matter with one fault of this kind."""
    lines = text.split("\n")
    at = rng.randrange(1, lines.index("---", 1))
    key, colon, rest = lines[at].partition(":")
    match kind:
        case "misspelt":
            place = rng.randrange(len(key))
            lines[at] = (
                f"{key[:place]}{rng.choice(('', 'x', key[place] * 2))}{key[place + 1 :]}:{rest}"
            )
        case "doubled":
            lines.insert(at, f"{key}{colon} [Bash, Write]")
        case "renamed":
            names = sorted({one for table in KEY_TABLES.values() for one in table.all})
            names = [one for one in names if KEY_TABLES[format].use_of(one) is None]
            lines[at] = f"{rng.choice(names)}:{rest}"
        case "unclosed":
            del lines[lines.index("---", 1)]
        case "crlf":
            return text.replace("\n", "\r\n").encode()
        case "bom":
            return b"\xef\xbb\xbf" + text.encode()
        case "latin":
            return text.encode() + "Réponds".encode("latin-1")
        case "large":
            return text.encode() + b"x" * MAX_BYTES
        case "alias":
            lines[at] = f"{key}: *one"
        case _:
            lines[at] = f"{key}: &one{rest}"
    return "\n".join(lines).encode()


def read(format: AgentFormat, data: bytes) -> AgentDefinition:
    name = "prompt.md" if format == "folder" else "one.md"
    file = AgentFile(
        path="one",
        format=format,
        location="user",
        parts=((name, data),),
        name="one",
        is_trusted=True,
    )
    return read_agent_file(file)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_of_a_front_matter_never_widens_a_grant(kind: str):
    rng = random.Random(kind)
    # Each of the largest files costs as much as a hundred others.
    for format, text, whole in fronts()[:: 20 if kind == "large" else 1]:
        damaged = damage(format, text, kind, rng)
        found = read(format, damaged)

        granted = grant_tools(found).granted
        most = set(whole)
        if kind == "renamed":
            # Without its key, a list of tools requests nothing, and a denial denies nothing.
            asked = {tool for name in found.tools.requested for tool in map_tool(name)}
            most |= {*DEFAULT_TOOLS, *asked}
        assert set(granted) <= most, (format, damaged[:200])
        assert not (found.has_errors and granted)
        assert all(one.line >= 1 and one.column >= 1 for one in found.findings)
        assert all(one.suggestion for one in found.findings if one.severity == "error")


BODY = "\nRead the changed files, then report.\n"
HEAD = "name: one\ndescription: Reviews a change.\n"
REFUSED = {
    "merge key": f"{HEAD}x: &a {{tools: Bash}}\n<<: *a\n",
    "growing aliases": f"{HEAD}a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "nested lists": f"{HEAD}tools: {'[' * 9_000}{']' * 9_000}\n",
    "second document": f"{HEAD}...\ntools: Bash\n",
    "constructor": f"{HEAD}x: !!python/object/apply:os.system [id]\n",
    "tab": f"{HEAD}\ttools: Bash\n",
    "key written twice, once by escapes": f'{HEAD}tools: Read\n"\\u0074ools": Bash\n',
    "key with another case": f"{HEAD}tools: Read\nTools: Bash\n",
    "thousands of keys": HEAD + "".join(f"tool{n}x: v\n" for n in range(4_000)),
    "line separator": f"{HEAD}tools: Read\u2028tools: Bash\n",
}


@pytest.mark.parametrize("kind", REFUSED)
def test_trick_of_yaml_is_refused_with_its_place_and_grants_nothing(kind: str):
    found = read("claude", f"---\n{REFUSED[kind]}---\n{BODY}".encode())

    (error,) = [one for one in found.findings if one.severity == "error"]
    assert (error.line > 1, bool(error.suggestion)) == (True, True)
    assert grant_tools(found).granted == ()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("sdd/interviewer", "sdd-interviewer"),
        ("'project:librarian'", "project-librarian"),
        ("lib\u200brarian", "lib-rarian"),
        ("\u202enairarbil\u202c", "nairarbil"),
        ("l\u0456brarian", "l-brarian"),
        ("\u4eba\u985e", "one"),
    ],
)
def test_name_with_other_signs_gets_a_plain_address(name: str, slug: str):
    found = read("claude", f"---\nname: {name}\ndescription: Reviews.\n---\n{BODY}".encode())

    assert found.name == slug
    assert "invalid-name" in {one.code for one in found.findings}
