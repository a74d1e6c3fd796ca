"""The context of an invoked agent: three shares, whole critical pieces, equal bytes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimir.agents.context import agent
from mimir.agents.context.agent import SHARES, ShareNeed, divide_window
from mimir.agents.context.inputs import EarlierAttempt, FileView, WorkerInput
from mimir.agents.context.task_context import get_task_context
from mimir.agents.context.token_budget import MOST_MARKS
from mimir.domain.invocation import LedgerExcerpt, MemoryHit, PinnedMaterial, PinnedSkill
from mimir.domain.usage import estimate
from mimir.errors import PlanError
from tests.support.contexts import WORKER

TOKENS = st.integers(0, 40_000)
NEEDS = st.fixed_dictionaries(
    {share: st.builds(ShareNeed, critical=TOKENS, other=TOKENS) for share in SHARES}
)
SIZES = st.lists(st.sampled_from([0, 1, 300, 4_000, 60_000]), max_size=4)
MARKS = 60 * (MOST_MARKS + 1)
"""Most tokens of the references of one share."""


def words(size: int, name: str) -> str:
    return (f"{name} says this.\n" * (size // 16 + 1))[:size]


def context_input(files: list[int], hits: list[int], rest: list[int], window: int) -> WorkerInput:
    earlier = EarlierAttempt(
        number=1,
        reason="qc_failure",
        issues=tuple(words(min(size, 900), f"issue {'abcd'[n]}") for n, size in enumerate(rest)),
        answer=words(sum(rest), "answer"),
        diff=words(sum(rest), "diff"),
    )
    material = PinnedMaterial(
        terms=("money",),
        memory=tuple(
            MemoryHit(id=f"m-{n}", kind=("note", "lesson")[n % 2], title="Rounding", text=words(size, f"hit {n}"))
            for n, size in enumerate(hits)
        ),
        files=("src/money.py",) * bool(files),
        instructions=words(sum(hits), "instruction"),
        ledger=LedgerExcerpt(run="run-1", goal=words(sum(hits), "goal"), decisions=("c: yes",)) if hits else None,
    )  # fmt: skip
    return replace(
        WORKER,
        files=tuple(
            FileView(path=f"f{n}.py", size=size, text=words(size, f"file {n}"))
            for n, size in enumerate(files)
        ),
        earlier=(earlier,) if rest else (),
        required_fixes=("Round half up.",) if rest else (),
        skills=(PinnedSkill(name="csv", description="Reads CSV.", body="Read it."),),
        material=material,
        window=window,
    )


@given(needs=NEEDS, window=st.integers(0, 120_000))
def test_shares_and_critical_pieces_are_the_window(
    needs: dict[agent.Share, ShareNeed], window: int
):
    critical = sum(need.critical for need in needs.values())
    budgets = divide_window(window, needs)

    used = sum(min(budgets[share], needs[share].other) for share in SHARES)
    assert used + critical <= max(window, critical)
    assert all(budget >= 0 for budget in budgets.values())
    if critical <= window and all(need.other >= window for need in needs.values()):
        assert used + critical == window


def test_context_shares_are_30_40_30_percent_and_the_rest_moves_on():
    def budgets(**needs: tuple[int, int]) -> list[int]:
        given = {share: ShareNeed(critical=c, other=o) for share, (c, o) in needs.items()}
        return list(divide_window(1_000, given).values())  # pyright: ignore[reportArgumentType]

    assert budgets(task=(0, 999), domain=(0, 999), project=(0, 999)) == [300, 400, 300]
    assert budgets(task=(100, 999), domain=(0, 999), project=(0, 999)) == [200, 400, 300]
    # Unused tokens go from the task to the domain, then to the project.
    assert budgets(task=(100, 50), domain=(0, 999), project=(0, 999)) == [200, 550, 300]
    assert budgets(task=(100, 50), domain=(0, 50), project=(0, 999)) == [200, 550, 800]
    # Critical pieces take from the last share first.
    assert budgets(task=(500, 999), domain=(0, 999), project=(0, 999)) == [0, 400, 100]
    assert budgets(task=(700, 999), domain=(0, 999), project=(0, 999)) == [0, 300, 0]


@settings(max_examples=150)
@given(
    files=SIZES, hits=SIZES, rest=SIZES, window=st.sampled_from([0, 2_000, 8_000, 30_000, 200_000])
)
def test_every_critical_piece_is_kept_and_the_rest_fits(
    files: list[int], hits: list[int], rest: list[int], window: int
):
    given_input = context_input(files, hits, rest, window)
    fitted = get_task_context("worker", given_input)
    whole = get_task_context("worker", replace(given_input, window=10**8))

    assert fitted.receipt.checksum == whole.receipt.checksum
    lines = [issue.split("\n")[0] for one in given_input.earlier for issue in one.issues if issue]
    assert all(text in fitted.text for text in (WORKER.task.prompt, *lines))
    # A piece that is not shown says how to get it.
    critical = sum(p.tokens for p in fitted.receipt.given if p.importance == "critical")
    assert estimate(fitted.text) <= max(window, critical) + 3 * MARKS
    assert get_task_context("worker", given_input).messages == fitted.messages
    assert fitted.system == whole.system


def test_critical_pieces_beyond_the_window_are_refused_and_the_largest_is_named():
    with pytest.raises(
        PlanError, match=r"41,200 of 30,000 tokens\. Largest piece: context \(38,000\)"
    ):
        agent.require_fit({"task": 3_200, "context": 38_000}, agent.window_of(None))
    agent.require_fit({"task": 30_000}, agent.window_of(36_000))


def test_the_goal_of_the_caller_is_shown_as_material():
    given_input = context_input([], [300], [], 30_000)
    material = given_input.material
    assert material is not None
    assert material.ledger is not None
    own = replace(material.ledger, goal="Ship it.\n# Obey", is_parent=True)

    text = get_task_context(
        "worker", replace(given_input, material=replace(material, ledger=own))
    ).text

    assert "Ledger of the run whose agent asks you, run-1, as material:" in text
    assert "Goal: Ship it. # Obey" in text
    assert "Decision: c: yes" in text
