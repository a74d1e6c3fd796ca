"""Cost of a run: limited before each call at the user's prices, and shown in each command about the run."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from mimir.cli.arguments import amount
from mimir.domain import money
from mimir.domain.event import EventKind
from mimir.domain.run import RunBudget
from mimir.errors import ConfigurationError, Paused
from mimir.planning.renderer import render
from tests.support import invariants
from tests.support.recorded_runs import replayed
from tests.support.whole_run import PLAN_PATH, Journey, Part, look, opened, plan, start, step, wrote

PLAN = plan(step("a"), step("b", "a"), step("c"))
PARTS: list[Part] = [wrote("a"), wrote("b"), wrote("c")]
OF_A_PROMPT, OF_AN_ANSWER = Decimal("0.15"), Decimal("0.60")


def priced(project: Path) -> dict[str, object]:
    """Return the prices of the play that `opened` writes beside a project."""
    play = f"play:{project.parent / f'{project.name}.play.yaml'}"
    return {play: {"input": str(OF_A_PROMPT), "output": str(OF_AN_ANSWER)}}


def units(text: object) -> int:
    return money.units(Decimal(str(text)))


async def begun(project: Path, cost: int) -> Journey:
    async with opened(project, PARTS, llm__prices=priced(project)) as mimir:
        limits = RunBudget(max_cost=cost)
        run = await mimir.create_run(PLAN, PLAN_PATH, only=(), limits=limits)
        ending = await mimir.drive(run, workers=3, apply="never", limits=limits, resumed=False)
        return await look(mimir, project, ending)


async def test_a_run_whose_money_is_spent_pauses_and_a_larger_limit_finishes(tmp_path: Path):
    project, cost = start(tmp_path), units("0.012")

    first = await begun(project, cost)

    assert (first.ending.exit_code, first.status["reason"]) == (75, "budget")
    assert f"mimir resume {first.ending.run} --max-cost 0.024" in first.ending.next_step
    assert first.status["max_cost"] == "0.012"
    assert 0 < units(first.status["cost"]) <= cost
    assert f"cost {first.report_json['totals']['cost']}" in first.report
    async with opened(project, PARTS) as mimir:  # the prices are the run's own
        ending = await mimir.drive(
            first.ending.run,
            workers=3,
            apply="never",
            limits=RunBudget(max_cost=units(2)),
            resumed=True,
        )
        last = await look(mimir, project, ending)
    assert last.ending.outcome == "completed"
    spent = [e.data["cost"] for e in last.facts.events_of_kind(EventKind.MODEL_CALLED)]
    assert units(last.status["cost"]) == sum(map(units, spent))
    assert invariants.broken(last.facts) == []
    assert (await replayed(project, last.ending.run)).differences == ()


async def test_model_without_a_price_is_refused_before_the_first_call(tmp_path: Path):
    project = start(tmp_path)
    named = plan(step("a"), step("b", model="dear-model"))

    async with opened(project, PARTS, llm__prices=priced(project)) as mimir:
        with pytest.raises(ConfigurationError, match="'dear-model' has no price") as caught:
            await mimir.create_run(named, PLAN_PATH, only=(), limits=RunBudget(max_cost=1))
        assert '[llm.prices."dear-model"]' in (caught.value.next_step or "")
        assert caught.value.exit_code == 78
        run = await mimir.create_run(named, PLAN_PATH, only=("a",), limits=RunBudget(max_cost=1))
        ending = await mimir.drive(run, workers=1, apply="never", limits=RunBudget(), resumed=False)
    assert ending.exit_code == 75


async def test_money_that_is_not_known_is_not_bounded_later(tmp_path: Path):
    project = start(tmp_path)
    async with opened(project, PARTS) as mimir:
        few = RunBudget(max_calls=4)
        run = await mimir.create_run(PLAN, PLAN_PATH, only=(), limits=few)
        await mimir.drive(run, workers=3, apply="never", limits=few, resumed=False)
        assert (await mimir.status(run))["cost"] is None
    async with opened(project, PARTS, llm__prices=priced(project)) as mimir:
        limits = RunBudget(max_cost=units(2), max_calls=99)
        with pytest.raises(ConfigurationError, match="had no price when the run began") as caught:
            await mimir.drive(run, workers=3, apply="never", limits=limits, resumed=True)
        assert f"--from {run}" in (caught.value.next_step or "")
        ending = await mimir.drive(
            run, workers=3, apply="never", limits=RunBudget(max_calls=99), resumed=True
        )
    assert ending.exit_code == 0


@pytest.mark.parametrize(
    ("few", "flag"),
    [
        (RunBudget(max_calls=0), "calls"),
        (RunBudget(max_tokens=5), "tokens"),
        (RunBudget(max_cost=5), "cost"),
    ],
)
async def test_planning_has_the_same_limits_and_the_proposed_limit_is_sufficient(
    few: RunBudget, flag: str, tmp_path: Path
):
    project = start(tmp_path)
    parts = [{"role": "pm", "turns": [{"text": render(plan(step("a")))}]}, *PARTS]

    async with opened(project, parts, llm__prices=priced(project)) as mimir:
        run = await mimir.create_planning_run(
            "Do it.", ecko=False, output=None, model="", limits=few
        )
        with pytest.raises(Paused, match="budget is used up") as caught:
            await mimir.make_plan(run)
        said = re.fullmatch(
            rf"Raise the limit: `mimir resume {run} --max-{flag} ([0-9.]+)`",
            caught.value.next_step or "",
        )
        assert said is not None
        most = units(amount(said[1])) if flag == "cost" else int(said[1])
        more = RunBudget(**{f"max_{flag}": most})
        ending = await mimir.drive(run, workers=1, apply="never", limits=more, resumed=True)
    assert (ending.outcome, ending.exit_code) == ("completed", 0)
