"""Context of an invoked agent: three shares of one window. Pure.

Critical pieces are never cut; they borrow from the shares that are left. The unused part of a share flows to the next one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from mimir.agents.context import quotation
from mimir.agents.context.inputs import WorkerInput
from mimir.agents.context.task_sections import FILE_PART, brief_header, requirements
from mimir.agents.context.token_budget import ContextBuilder, ContextPart, ContextPiece
from mimir.agents.context.worker import (
    describe_limits,
    list_file_pieces,
    skill_piece,
    write_earlier,
)
from mimir.domain.invocation import LedgerExcerpt, MemoryHit, PinnedMaterial
from mimir.domain.quoted_text import list_path
from mimir.domain.value_class import value_class
from mimir.errors import PlanError

Share = Literal["task", "domain", "project"]
SHARES: Mapping[Share, int] = {"task": 30, "domain": 40, "project": 30}
"""Percent of the window, in the order in which unused tokens flow."""
USUAL_WINDOW = 30_000
"""Tokens of the window of a model whose context is not known."""
ANSWER_TOKENS = 4_000
RESERVED_TOKENS = 2_000
"""Of each context, for the rules of the engine."""
MOST_OF_HIT = 600
"""Tokens of one node of the memory."""
MOST_OF_INSTRUCTIONS = 8_000
"""Tokens of `AGENTS.md`."""
MOST_OF_LEDGER = 1_500
"""Tokens of the excerpt of a ledger."""
_OF_PROJECT = ("handoff", "lesson")
"""Kinds of nodes that belong to the project's share; the others belong to the domain's."""
FEEDBACK = "## Decisions about memories that you proposed for this task before, as material"
_NO_LIMIT = 10**9


@value_class
class ShareNeed:
    """Tokens that the pieces of one share need as a whole."""

    critical: int = 0
    other: int = 0


def window_of(context_tokens: int | None) -> int:
    """Return the tokens of the window of a model; None: its context is not known."""
    if context_tokens is None:
        return USUAL_WINDOW
    return max(0, context_tokens - ANSWER_TOKENS - RESERVED_TOKENS)


def require_fit(critical: Mapping[str, int], window: int) -> None:
    """Refuse critical pieces that together exceed the window.

    Args:
        critical: Name → tokens.
        window: Tokens.

    Raises:
        PlanError: They exceed it; the message names the largest.
    """
    total = sum(critical.values())
    if total > window:
        largest = max(critical, key=lambda name: critical[name])
        raise PlanError(
            f"The task needs {total:,} of {window:,} tokens. Largest piece: {largest} ({critical[largest]:,}).",
            code="context-too-large",
            next_step="Name files with --context-file instead of text, or choose a model with a larger context.",
        )


def divide_window(window: int, needs: Mapping[Share, ShareNeed]) -> Mapping[Share, int]:
    """Return the tokens of each share for the pieces that are not critical.

    Critical pieces that exceed their share borrow from the others, the last one first. The unused
    part of a share flows to the next one.
    """
    sizes: dict[Share, int] = {share: window * part // 100 for share, part in SHARES.items()}
    sizes["project"] = window - sizes["task"] - sizes["domain"]
    free = {share: size - needs[share].critical for share, size in sizes.items()}
    debt = -sum(left for left in free.values() if left < 0)
    for share in reversed((*SHARES,)):
        taken = min(debt, max(0, free[share]))
        debt -= taken
        free[share] = max(0, free[share] - taken)
    budgets: dict[Share, int] = {}
    unused = 0
    for share in SHARES:
        budgets[share] = free[share] + unused
        unused = max(0, budgets[share] - needs[share].other)
    return budgets


def write_agent_context(
    given: WorkerInput, material: PinnedMaterial, sheet: ContextBuilder
) -> None:
    """Write the context of an invoked agent.

    Raises:
        PlanError: A critical piece was lost, which cannot be.
    """
    sections: tuple[tuple[Share, Callable[[int, ContextBuilder], None]], ...] = (
        ("task", lambda _, to: _write_task(given, material, to)),
        ("domain", lambda budget, to: to.add(_domain_part(given, material, budget))),
        ("project", lambda budget, to: to.add(_project_part(material, budget))),
        ("task", lambda budget, to: write_earlier(given, budget, to) if given.earlier else None),
    )
    # Without a limit first: so a share's need is the size of its pieces.
    whole: dict[Share, ContextBuilder] = {share: ContextBuilder() for share in SHARES}
    for share, write in sections:
        write(_NO_LIMIT, whole[share])
    budgets = divide_window(given.window, {share: _need(one) for share, one in whole.items()})
    for share, write in sections:
        write(budgets[share], sheet)
    # Equal before and after the fit, or nothing is sent.
    before = Counter(hash for one in whole.values() for hash in _critical_hashes(one))
    if before != Counter(_critical_hashes(sheet)):
        raise PlanError(
            "A critical piece of the context was lost; nothing was asked.",
            code="context-checksum",
            next_step="Report it: this is a fault of mimir.",
        )


def _need(sheet: ContextBuilder) -> ShareNeed:
    critical = sum(one.tokens for one in sheet.given if one.importance == "critical")
    return ShareNeed(critical=critical, other=sum(one.tokens for one in sheet.given) - critical)


def _critical_hashes(sheet: ContextBuilder) -> list[str]:
    return [one.hash for one in sheet.given if one.importance == "critical"]


def _write_task(given: WorkerInput, material: PinnedMaterial, sheet: ContextBuilder) -> None:
    task = given.task
    role = f"Your role: {task.worker_role}"
    sheet.add_text("task", brief_header(task, given.attempt, given.attempts, role))
    sheet.add_text("prompt", f"## Task\n\n{quotation.verbatim(task.prompt)}")
    if task.criteria or task.checks:
        sheet.add_text("criteria", requirements(task))
    if material.feedback:
        lines = "\n".join(f"- {quotation.one_line(one)}" for one in material.feedback)
        sheet.add_text("feedback", f"{FEEDBACK}\n\n{lines}")
    sheet.add_text("limits", describe_limits(given))


def _domain_part(given: WorkerInput, material: PinnedMaterial, budget: int) -> ContextPart:
    files = list_file_pieces(given)
    # A large file is shown as far as its part of the share allows.
    most = max(FILE_PART, budget // max(1, len(files)))
    pieces = [_with_most(piece, most) for piece in files]
    if given.skills:
        pieces.append(skill_piece(given.skills))
    pieces += [_memory_piece(one) for one in material.memory if one.kind not in _OF_PROJECT]
    if material.files:
        pieces.append(
            ContextPiece(
                name="domain files",
                title=f"Files whose paths have words of your definition ({', '.join(material.terms)}):",
                content="\n".join(map(list_path, material.files)),
                importance="optional",
                reference="list_files",
            )
        )
    return ContextPart(heading="## Material", pieces=pieces, budget=budget)


def _project_part(material: PinnedMaterial, budget: int) -> ContextPart:
    pieces = [_ledger_piece(material.ledger)] if material.ledger else []
    if material.instructions.strip():
        pieces.append(
            ContextPiece(
                name="file:AGENTS.md",
                title="AGENTS.md of the project, as material:",
                content=material.instructions,
                reference='read_file("AGENTS.md")',
                most=MOST_OF_INSTRUCTIONS,
            )
        )
    pieces += [_memory_piece(one) for one in material.memory if one.kind in _OF_PROJECT]
    return ContextPart(heading="## The project", pieces=pieces, budget=budget)


def _ledger_piece(ledger: LedgerExcerpt) -> ContextPiece:
    whose = "the run whose agent asks you" if ledger.is_parent else "the last plan of the project"
    lines = [
        f"Goal: {ledger.goal}",
        *(f"Decision: {one}" for one in ledger.decisions),
        *(f"State: {one}" for one in ledger.handoff),
    ]
    return ContextPiece(
        name=f"ledger:{ledger.run}",
        title=f"Ledger of {whose}, {quotation.one_line(ledger.run)}, as material:",
        content="\n".join(map(quotation.one_line, lines)),
        # The goal above explains the task; an earlier plan may have nothing to do with it.
        importance="important" if ledger.is_parent else "optional",
        most=MOST_OF_LEDGER,
    )


def _with_most(piece: ContextPiece, most: int) -> ContextPiece:
    return replace(piece, most=most) if piece.importance == "important" else piece


def _memory_piece(hit: MemoryHit) -> ContextPiece:
    kind, title = quotation.one_line(hit.kind), quotation.one_line(hit.title)[:200]
    return ContextPiece(
        name=f"memory:{hit.id}",
        title=f"{kind} {list_path(hit.id)}: {title}",
        content=hit.text,
        importance="optional",
        reference=f"memory_get_node({quotation.quote_argument(hit.id)})",
        most=MOST_OF_HIT,
    )
