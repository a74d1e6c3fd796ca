"""Page of proposed memories, each with the commands that decide about it."""

from collections.abc import Mapping, Sequence

from mimir.cli.console import clean, clean_line
from mimir.cli.layout import text_block, wrap
from mimir.domain.json_value import as_text, as_texts

Shape = Mapping[str, object]


def proposals_page(found: Sequence[Shape], width: int) -> list[str]:
    """Return memories below their count; empty: there is none."""
    if not found:
        return []
    count = sum(1 for one in found if one.get("state") == "proposed")
    lines = [f"{count} {'memory' if count == 1 else 'memories'} proposed"]
    for one in found:
        lines += ["", *memory_lines(one, width)]
    return lines


def memory_lines(one: Shape, width: int) -> list[str]:
    """Return one memory: proposer, text, sources, findings, decision or commands."""
    id, state = clean_line(as_text(one.get("id"))), as_text(one.get("state"))
    origin = f"of {as_text(one.get('proposed_by'))}"
    if run := as_text(one.get("run")):
        origin += f" in {run}"
    head = f"{as_text(one.get('operation'))} {origin}, {as_text(one.get('proposed_at'))[:16]}"
    lines = wrap(clean_line(head.replace("T", " ")), width, first=f"{id}  ", rest="    ")
    lines += text_block(clean(as_text(one.get("text")).strip()), width)
    relevance = one.get("relevance")
    if isinstance(relevance, float):
        lines += [f"  relevance: {relevance:.2f}"]
    for name in ("sources", "unverified", "contradicts"):
        for text in as_texts(one.get(name)):
            lines += wrap(clean_line(text), width, first=f"  {name}: ", rest="    ")
    if same := as_text(one.get("duplicate_of")):
        lines += wrap(clean_line(same), width, first="  same as: ", rest="    ")
    if state == "proposed":
        command = f"mimir memory accept {id} · reject {id} --reason TEXT · edit {id} TEXT"
        return [*lines, *wrap(command, width, first="  decide: ", rest="    ")]
    newer = as_text(one.get("superseded_by"))
    if state in ("superseded", "expired"):
        end = f"superseded by {newer}" if newer else state
        lines += wrap(clean_line(end), width, first="  ", rest="    ")
    by, at = as_text(one.get("decided_by")), as_text(one.get("decided_at"))[:16]
    end = f"{as_text(one.get('feedback')) or state}{f' by {by}' if by else ''} {at}"
    return [*lines, *wrap(clean_line(end.replace("T", " ")), width, first="  ", rest="    ")]
