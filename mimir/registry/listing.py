"""JSON shapes of definitions, findings and the compatibility matrix. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from mimir.domain.agent_definition import AgentDefinition
from mimir.domain.usage import estimate
from mimir.registry.catalogue import AgentEntry
from mimir.registry.tool_names import grant_tools, map_tool


def shape_entry(entry: AgentEntry) -> dict[str, object]:
    """Return one definition of `mimir agents --json`."""
    one, grant = entry.definition, entry.grant
    return {
        "address": entry.address,
        "kind": one.kind,
        "format": one.source.format,
        "location": one.source.location,
        "path": one.source.path,
        "sha256": one.source.hash,
        "trusted": one.source.is_trusted,
        "description": one.description,
        "tools": {
            "granted": list(grant.granted),
            "requested": list(one.tools.requested),
            "unmapped": list(grant.unmapped),
            "withheld": dict(grant.withheld),
        },
        "model": {"requested": list(one.models), "used": entry.model},
        "usable": one.is_usable,
        "hidden_by": entry.hidden_by,
        "findings": [asdict(finding) for finding in one.findings],
    }


def shape_definition(one: AgentDefinition) -> Mapping[str, object]:
    """Return the requests of a definition besides tools and model."""
    return {
        "prompt": one.prompt,
        "program": one.program,
        "files": list(one.files),
        "skills": list(one.skills),
        "limits": {
            "timeout_seconds": one.limits.timeout_seconds,
            "max_tool_calls": one.limits.max_tool_calls,
            "max_tokens": one.limits.max_tokens,
        },
        "memory": one.memory,
        "verify": one.verify,
        "may_spawn": one.may_spawn,
        "output_schema": one.output_schema,
    }


def shape_checked(one: AgentDefinition, tries: int | None) -> Mapping[str, object]:
    """Return the row of one file in the matrix.

    Args:
        one: The definition.
        tries: Answers until one has the response form. None: none has it.
    """
    requested = one.tools.requested
    mapped = [name for name in requested if map_tool(name)]
    usable, reason = judge_usability(one)
    return {
        "path": one.source.path,
        "format": one.source.format,
        "name": one.name,
        "readable": not one.has_errors,
        "findings": dict(sorted(Counter(finding.code for finding in one.findings).items())),
        "tools": {
            "requested": list(requested),
            "mapped": mapped,
            "unmapped": [name for name in requested if not map_tool(name)],
            "granted": list(grant_tools(one).granted),
        },
        "model": list(one.models),
        "prompt_tokens": estimate(one.prompt),
        "response_form": form_words(tries),
        "usable": usable,
        "reason": reason,
    }


def form_words(tries: int | None) -> str:
    """Return the words of the matrix for a number of answers."""
    return {1: "1 try", 2: "2 tries"}.get(tries or 0, "never")


def judge_usability(one: AgentDefinition) -> tuple[str, str]:
    """Return `yes`, `with_gaps` or `no`, and the reason."""
    error = next((finding for finding in one.findings if finding.severity == "error"), None)
    if error is not None:
        return "no", error.code
    if one.is_disabled:
        return "no", "disabled by its file"
    codes = {finding.code for finding in one.findings}
    for code in ("tool-unmapped", "refused-key", "unknown-key", "front-matter-colon"):
        if code in codes:
            return "with_gaps", code
    return "yes", ""


def shape_findings(found: Sequence[AgentDefinition]) -> Iterable[Mapping[str, object]]:
    """Yield every finding with the path of its file."""
    for one in found:
        for finding in one.findings:
            yield {"path": one.source.keys_path, **asdict(finding)}
