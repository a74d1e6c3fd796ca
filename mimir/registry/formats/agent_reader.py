"""Reader of one agent file: keys become a definition, faults become findings. Pure."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from mimir.domain.agent_definition import (
    AgentDefinition,
    AgentFormat,
    AgentLocation,
    AgentSource,
)
from mimir.domain.finding import START, Finding, SourcePosition
from mimir.domain.located_tree import LocatedValue
from mimir.domain.value_class import value_class
from mimir.registry.findings import make_agent_finding
from mimir.registry.formats.fields import FieldReader
from mimir.registry.formats.format_readers import read_own_keys
from mimir.registry.formats.key_tables import (
    KEY_TABLES,
    SKILL_AGENT_KEYS,
    KeyTable,
    find_key_faults,
    is_agent_key,
)
from mimir.registry.front_matter import FrontMatter, parse_keys, split_front_matter
from mimir.registry.tool_names import map_tool, strip_pattern

MAX_BYTES = 1024 * 1024
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MIN_PROMPT = 20
MAX_PROMPT = 30_000
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NEW_LINE = re.compile(r"\r\n?")


@value_class
class AgentFile:
    """One definition as found: the bytes of its files, nothing read yet."""

    path: str
    """Of the file, or of the folder in format `folder`."""
    format: AgentFormat
    location: AgentLocation
    parts: tuple[tuple[str, bytes], ...]
    """(file name, content). The last one holds the prompt, an earlier one the keys."""
    name: str
    """From the file or folder name, if the file gives none."""
    is_agent: bool = True
    """False: a skill, which is no agent."""
    may_lack_keys: bool = False
    """Whether the whole file may be the prompt, as in a chat mode."""
    is_trusted: bool = False
    findings: tuple[Finding, ...] = ()
    """Found before the file was read, such as its size."""


@lru_cache(maxsize=1024)  # a server lists the same files again and again
def read_agent_file(file: AgentFile) -> AgentDefinition:
    """Return the definition of a file; an unreadable one has error findings."""
    source = AgentSource(
        location=file.location,
        format=file.format,
        path=file.path,
        hash=hash_parts(file.parts),
        is_trusted=file.is_trusted,
        keys_file=file.parts[0][0] if file.parts and file.format == "folder" else "",
    )
    skill, own = _split_name(file)
    name = skill + (slug_of(own) or "unnamed")
    empty = AgentDefinition(name=name, title=own, source=source)
    texts, early = _decode(file)
    if not texts or any(one.severity == "error" for one in early):
        return replace(empty, findings=early)
    values, prompt, findings = _split(file, texts)
    reader = FieldReader(values or LocatedValue("map"))
    reader.findings += [*early, *findings]
    if values is None:
        found = replace(empty, prompt=prompt, description=_first_sentence(prompt))
    else:
        table = SKILL_AGENT_KEYS if _is_skill_agent(file) else KEY_TABLES[file.format]
        found = _read_values(file, reader, table, replace(empty, prompt=prompt))
    _judge_prompt(reader, prompt)
    return replace(found, findings=tuple(sorted(reader.findings, key=_by_position)))


def hash_parts(parts: Sequence[tuple[str, bytes]]) -> str:
    """Return the SHA-256 of one file, or over the names and hashes of several."""
    if len(parts) == 1:
        return hashlib.sha256(parts[0][1]).hexdigest()
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in parts]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def slug_of(name: str) -> str:
    """Return the address form of a name: ASCII lower-case letters and digits, joined by `-`."""
    # Signs that look like ASCII are left out: a name must not imitate another one.
    return "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:MAX_NAME].strip("-")


def _by_position(finding: Finding) -> tuple[int, int, str]:
    return finding.line, finding.column, finding.code


def _is_skill_agent(file: AgentFile) -> bool:
    return file.format == "skill" and file.is_agent


def _decode(file: AgentFile) -> tuple[list[str], tuple[Finding, ...]]:
    """Return the texts with line feeds, without byte order marks."""
    texts: list[str] = []
    findings = list(file.findings)
    for name, data in file.parts:
        at = START
        if len(data) > MAX_BYTES:
            message = f"{name} has {len(data):,} bytes; at most {MAX_BYTES:,} are read."
            findings.append(make_agent_finding("file-unreadable", message, at, "Shorten it."))
            continue
        try:
            text = data.decode("utf-8-sig")
            bad, fault = text.find("\0"), "a NUL character"
        except UnicodeDecodeError as error:
            text, bad, fault = data[: error.start].decode("utf-8-sig", "replace"), error.start, ""
            bad = len(text)
        if bad >= 0:
            before = text[:bad]
            at = SourcePosition(
                line=before.count("\n") + 1, column=bad - (before.rfind("\n") + 1) + 1
            )
            message = f"{name} contains {fault or 'bytes that are not UTF-8'}."
            hint = "Save it as UTF-8 text."
            findings.append(make_agent_finding("file-unreadable", message, at, hint))
            continue
        texts.append(_NEW_LINE.sub("\n", text))
    return texts, tuple(findings)


def _split(
    file: AgentFile, texts: list[str]
) -> tuple[LocatedValue | None, str, tuple[Finding, ...]]:
    """Return keys, prompt and findings of a file; keys None: absent or unreadable."""
    if len(texts) > 1:
        values, findings = parse_keys(texts[0], is_agent_key)
        front = split_front_matter(texts[-1], is_agent_key)
        if front.values is not None or front.findings:
            message = "The prompt has front matter although the folder has a configuration file."
            hint = "Keep the keys in one of them."
            findings = (*findings, make_agent_finding("duplicate-key", message, START, hint))
        return values, texts[-1].strip(), findings
    front = split_front_matter(texts[0], is_agent_key)
    if front.values is None and not front.is_unreadable:
        return None, front.body.strip(), (_missing_front_matter(file, front),)
    return front.values, front.body.strip(), front.findings


def _missing_front_matter(file: AgentFile, front: FrontMatter) -> Finding:
    message = "The file has no front matter: its first line is not '---'."
    if file.may_lack_keys:
        message += " The whole file is the prompt."
        return make_agent_finding("front-matter-missing", message, severity="warning")
    hint = "Begin the file with '---', the keys name and description, and '---'."
    return make_agent_finding("front-matter-missing", message, START, hint)


def _first_sentence(text: str) -> str:
    line = next((one for one in text.split("\n") if one.strip(" #*-`>")), "").strip(" #*`>")
    return line.split(". ")[0][:MAX_DESCRIPTION]


def _judge_prompt(reader: FieldReader, prompt: str) -> None:
    if any(one.severity == "error" and one.code.startswith("front-") for one in reader.findings):
        return  # the prompt was not reached
    if len(prompt) < MIN_PROMPT:
        hint = "Write the instructions of the agent below the front matter."
        message = f"The prompt has {len(prompt)} characters; at least {MIN_PROMPT} are needed."
        reader.findings.append(make_agent_finding("prompt-empty", message, START, hint))
    elif len(prompt) > MAX_PROMPT:
        message = (
            f"The prompt has {len(prompt):,} characters; over {MAX_PROMPT:,} are seldom read whole."
        )
        reader.findings.append(make_agent_finding("prompt-long", message))


def _read_values(
    file: AgentFile, reader: FieldReader, table: KeyTable, empty: AgentDefinition
) -> AgentDefinition:
    reader.findings += find_key_faults(reader.values, table, file.format)
    name, title = _read_name(file, reader)
    known = replace(
        empty,
        name=name,
        title=title,
        description=_read_description(file, reader, empty.prompt),
        models=reader.names("model") or (),
    )
    known = read_own_keys(file.format, reader, known)
    if "inherit" in known.models:
        known = replace(known, models=())
    _judge_tools(reader, known)
    return known


def _split_name(file: AgentFile) -> tuple[str, str]:
    """Return the skill of an agent with `/`, or nothing, and the name of its file or folder."""
    skill, slash, own = file.name.rpartition("/")
    return (slug_of(skill) or "unnamed") + slash if slash else "", own


def _read_name(file: AgentFile, reader: FieldReader) -> tuple[str, str]:
    """Return the address form of the name, and the name as written."""
    skill, own = _split_name(file)
    written = "" if file.format == "opencode" else reader.text("name")
    title = written or own
    is_strict = file.format == "skill"
    name = slug_of(title)
    plain = title.replace("_", "-") if file.format == "folder" else title
    # Many public files have a name in another script; their address comes from the file.
    folder = slug_of(own)
    if not written and file.format in ("claude", "skill"):
        _add_name_fault(reader, "There is no name; the file name is used.", is_strict, name)
    elif not _NAME.fullmatch(plain) or len(plain) > MAX_NAME:
        message = f"The name {title[:80]!r} has other signs than a-z, 0-9 and '-', or over {MAX_NAME} characters."
        if folder and not name:
            message += f" Its address is that of its file: {folder}."
        _add_name_fault(reader, message, is_strict or not (name or folder), name or folder)
    if file.format in ("folder", "skill") and written and slug_of(written) != folder:
        severity = "error" if file.format == "folder" else "warning"
        message = f"The name {written[:80]!r} differs from the folder {own[:80]!r}."
        at = reader.place("name")
        hint = f"Write name: {own[:80]}"
        reader.findings.append(make_agent_finding("name-mismatch", message, at, hint, severity))
    return skill + (name or folder or "unnamed"), title


def _add_name_fault(reader: FieldReader, message: str, is_error: bool, name: str) -> None:
    hint = f"Write name: {name}" if name else "Use lower-case letters, digits and '-'."
    severity = "error" if is_error else "warning"
    at = reader.place("name")
    reader.findings.append(make_agent_finding("invalid-name", message, at, hint, severity))


def _read_description(file: AgentFile, reader: FieldReader, prompt: str) -> str:
    text = reader.text("description")
    if not text:
        is_error = file.format != "copilot"
        message = "There is no description."
        if not is_error:
            message += " The first sentence of the prompt is used."
        reader.findings.append(
            make_agent_finding(
                "description-missing",
                message,
                reader.place("description"),
                "Add a line: description: TEXT",
                "error" if is_error else "warning",
            )
        )
        return "" if is_error else _first_sentence(prompt)
    if len(text) > MAX_DESCRIPTION:
        message = f"The description has {len(text):,} characters; {MAX_DESCRIPTION:,} are the limit of other programs."
        reader.add("description-long", message, "description")
    return text


def _judge_tools(reader: FieldReader, found: AgentDefinition) -> None:
    request = found.tools
    if found.kind == "cli":
        if request.requested or request.denied:
            message = "A program brings tools of its own; the tools of the file change nothing."
            reader.add("unsupported-key", message, "tools" if request.requested else "deny_tools")
        return
    key = "allowed-tools" if reader.value("allowed-tools") else "tools"
    for name in request.requested:
        if not map_tool(name):
            reader.add("tool-unmapped", f"{name[:80]!r} is no tool of mimir; not granted.", key)
        elif strip_pattern(name) != name.strip():
            message = f"The pattern of {name[:80]!r} is not enforced; the sandbox limits the tool."
            reader.add("tool-pattern", message, key)
    if request.is_default:
        message = "The file names no tools; it gets the default tools, which only read."
        reader.add("tools-default", message, key)
