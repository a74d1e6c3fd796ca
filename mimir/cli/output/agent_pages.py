"""Agent definitions as lines: the list, one definition, findings and the matrix."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from mimir.attempts.agent_answers.form_trial import try_form
from mimir.cli.console import clean, clean_line
from mimir.cli.layout import shorten, table, text_block, wrap
from mimir.cli.output.findings import as_lines
from mimir.domain.agent_definition import AgentDefinition
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts
from mimir.domain.quoted_text import count_noun
from mimir.registry.catalogue import AgentEntry
from mimir.registry.listing import form_words, judge_usability
from mimir.registry.skills import FoundSkill
from mimir.registry.tool_names import grant_tools

MAX_DESCRIPTION = 150
"""Columns of a description in the list; a page has the whole one."""
PROGRAM_TOOLS = "the tools of the program, in the sandbox"
SEVERITIES = ("error", "warning", "note")


def list_lines(entries: Sequence[AgentEntry], width: int, cut: str, *, every: bool) -> list[str]:
    """Return the table of definitions; hidden and unusable ones only with `every`."""
    shown = [one for one in entries if every or (one.definition.is_usable and not one.hidden_by)]
    rows = [("agent", "kind", "may", "description")]
    for one in shown:
        found = one.definition
        text = shorten(clean_line(found.description), MAX_DESCRIPTION, cut)
        rows.append((one.address, found.kind, _describe_rights(one), text))
    lines = table(rows, width) if shown else ["There are no agent definitions."]
    left = len(entries) - len(shown)
    if left:
        verb = "is" if left == 1 else "are"
        lines.append(f"{left} more {verb} hidden or unusable: mimir agents --all")
    if unread := next((one for one in shown if not one.definition.source.is_trusted), None):
        lines.append("Those of the project may only read until you trust them.")
        lines.append(f"next: mimir agents show {unread.address}")
    return lines


def _describe_rights(entry: AgentEntry) -> str:
    """Return the rights of a definition in one word."""
    found = entry.definition
    if entry.hidden_by:
        return "hidden"
    if not found.is_usable:
        return "unusable"
    if found.kind == "cli":
        return "program" if found.source.is_trusted else "untrusted"
    granted = entry.grant.granted
    if "run" in granted:
        return "write, run" if "write_file" in granted else "read, run"
    if not granted:
        return "no tool"
    return "write" if "write_file" in granted else "read"


def entry_page(entry: AgentEntry, width: int) -> list[str]:
    """Return everything about one definition; the prompt is its last part."""
    one, source = entry.definition, entry.definition.source
    grant = entry.grant
    is_program = one.kind == "cli"
    doubt = "it is not started" if is_program else "it may only read"
    trust = "trusted" if source.is_trusted else f"not trusted: {doubt}"
    named_none = "" if is_program else "no tools named; the default set"
    granted = PROGRAM_TOOLS if is_program and source.is_trusted else _list(grant.granted)
    facts = [
        ("agent", entry.address),
        ("description", clean_line(one.description)),
        ("file", f"{clean_line(source.path)} ({source.format}, {source.location})"),
        ("hash", f"{source.hash[:12]} · {trust}"),
        ("kind", f"cli: {one.program}" if is_program else "sdk"),
        ("model", clean_line(entry.model or ", ".join(one.models)) or "that of the caller"),
        ("requested", _list(one.tools.requested) or named_none),
        ("denied", _list(one.tools.denied)),
        ("granted", granted or "none"),
        ("not granted", _list([f"{tool} ({reason})" for tool, reason in grant.withheld.items()])),
        ("unknown", _list(grant.unmapped)),
        ("may write", _list(one.files)),
        ("skills", _list(one.skills)),
        ("verified by", _describe_verification(one)),
        ("limits", _describe_limits(one)),
        ("hidden by", clean_line(entry.hidden_by)),
    ]
    lines = table([(name, value) for name, value in facts if value], width)
    lines += ["", *as_lines(one.findings, source.keys_path)] if one.findings else []
    shown = clean(one.prompt)
    return [*lines, "", f"prompt ({len(one.prompt):,} characters)", *text_block(shown, width)]


def skill_page(found: FoundSkill, width: int) -> list[str]:
    """Return everything that an agent gets from a skill of the project."""
    one = found.skill
    facts = [("skill", one.name), ("file", clean_line(found.path)), ("hash", found.hash[:12])]
    facts.append(("description", clean_line(one.description)))
    lines = ["", *table(facts, width), *text_block(clean(one.body), width)]
    for path, text in (*one.files, *one.scripts):
        lines += ["", clean_line(path), *text_block(clean(text), width)]
    return lines


def _list(names: Sequence[str]) -> str:
    return clean_line(", ".join(names))


def _describe_verification(one: AgentDefinition) -> str:
    if one.verify == "auto" or not one.source.is_trusted:
        return ""
    words = {"checks": "checks alone", "judge": "QC, also without a criterion"}
    return words.get(one.verify, "its citations, each of which must hold")


def _describe_limits(one: AgentDefinition) -> str:
    limits = one.limits
    values = (
        (limits.timeout_seconds, "seconds"),
        (limits.max_tool_calls, "tool calls"),
        (limits.max_tokens, "tokens of answer"),
    )
    return ", ".join(f"{value} {unit}" for value, unit in values if value is not None)


def check_lines(found: Sequence[AgentDefinition]) -> list[str]:
    """Return errors and warnings of all files, errors first, and the counts."""
    lines: list[str] = []
    for severity in ("error", "warning"):
        for one in found:
            chosen = [finding for finding in one.findings if finding.severity == severity]
            lines += as_lines(chosen, one.source.keys_path)
    counts = Counter(finding.severity for one in found for finding in one.findings)
    parts = [count_noun(len(found), "file"), *(count_noun(counts[s], s) for s in SEVERITIES)]
    if not found:
        return ["No agent file was found."]
    return [*lines, f"{', '.join(parts)}."]


def matrix_lines(found: Sequence[AgentDefinition], width: int) -> list[str]:
    """Return files by format, usability and reason."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for one in found:
        usable, reason = judge_usability(one)
        form = form_words(try_form(one.output_schema))
        words = reason or "every key is used"
        counts[one.source.format, usable.replace("_", " "), form, words] += 1
    rows = [("format", "usable", "form", "files", "reason")]
    for (format, usable, form, reason), count in sorted(counts.items()):
        rows.append((format, usable, form, str(count), reason))
    requested = sum(len(one.tools.requested) for one in found)
    unmapped = sum(len(grant_tools(one).unmapped) for one in found)
    share = f" ({(requested - unmapped) / requested:.1%})" if requested else ""
    total = f"{count_noun(len(found), 'file')}; {requested - unmapped} of {requested} requested tools are mapped{share}."
    return [*table(rows, width, right=(3,)), *wrap(total, width)]


def response_lines(response: Mapping[str, object], width: int) -> list[str]:
    """Return status, assurance, changed files, citations and answer of an invocation."""
    result, proof = as_object(response.get("deliverables")), as_object(response.get("assurance"))
    citations, error = as_object(proof.get("citations")), as_object(response.get("error"))
    paths = [as_text(one.get("path")) for one in as_objects(result.get("documents"))]
    rows = [
        ("agent", as_text(response.get("agent"))),
        ("status", as_text(response.get("status"))),
        ("cause", clean_line(as_text(error.get("cause")))),
        ("problem", clean_line(as_text(error.get("message")))),
        ("assurance", as_text(proof.get("level"))),
        ("changed", _list(paths)),
        ("citations", _count_citations(citations)),
    ]
    lines = table([(name, value) for name, value in rows if value], width)
    for one in as_texts(citations.get("unverified")):
        lines += wrap(clean_line(one), width, first="not verified: ", rest="  ")
    for one in as_objects(as_object(response.get("metadata")).get("findings")):
        text = f"{as_text(one.get('code'))}: {as_text(one.get('message'))}"
        lines += wrap(clean_line(text), width, first="finding ", rest="  ")
    answer = clean(as_text(result.get("analysis")))
    structured = as_object(result.get("structured"))
    lines += ["answer", *text_block(answer, width)] if answer else []
    return lines + ([clean(json.dumps(structured, indent=2))] if structured else [])


def _count_citations(citations: Mapping[str, object]) -> str:
    total = citations.get("total")
    return f"{citations.get('verified')} of {total} verified" if total else ""


def session_lines(shape: Mapping[str, object]) -> list[str]:
    """Return the metrics of a session as lines, in total and for each agent."""
    total = as_object(shape.get("metrics"))
    goals, by_agent = as_object(total.get("goals")), as_object(total.get("by_agent"))
    parts = {"session": total, **{name: as_object(one) for name, one in by_agent.items()}}
    lines = [f"{shape.get('session')}  {shape.get('name') or ''}".rstrip()]
    lines.append(f"calls left {shape.get('calls_left')}, queued {shape.get('queued')}")
    budget = as_object(shape.get("budget"))
    limited = [one for one in ("calls", "tokens", "cost") if budget.get(f"max_{one}") is not None]
    used = [f"{one} {budget.get(one)} of {budget[f'max_{one}']}" for one in limited]
    lines += [f"budget: {', '.join(used)}"] if used else []
    for name, part in parts.items():
        lines.append(name)
        for metric, value in part.items():
            if metric in ("goals", "by_agent") or value in (None, {}):
                continue
            goal = f"  (goal {goals[metric]})" if metric in goals else ""
            shown = as_object(value)
            text = ", ".join(f"{key} {count}" for key, count in shown.items()) or str(value)
            lines.append(f"  {metric.replace('_', ' ')}: {text}{goal}")
    return lines
