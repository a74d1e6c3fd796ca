"""A run's limits of calls, tokens, money and time, over all workers and restarts: never exceeded, always reported, always raisable."""

import asyncio
import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mimir.domain.message import Answer, ModelRequest
from mimir.domain.money import ModelPrice
from mimir.domain.plan import Plan
from mimir.domain.run import RunBudget, RunResult
from mimir.llm.scripted.scripted_model import ScriptedModel
from tests.support import invariants
from tests.support.run_facts import Facts, gather
from tests.support.trust_sizes import Cases, sized
from tests.support.whole_run import PLAN_PATH, Part, calls, opened, plan, start, step, worker

MOST_TASKS = sized(small=3, ci=6, full=8)
RESUMES = 40
Bound = Literal["calls", "tokens", "money"]
PRICE = ModelPrice(input=150_000, output=600_000)
"""Units a token; the price of a million tokens in the settings below."""
FIRST = {"calls": (0, 1), "tokens": (1000, 15_000), "money": (10**8, 3 * 10**9)}
"""The smallest limit of a run, and the increase, up to nine times."""
RAISED = {"calls": 1, "tokens": 20_000, "money": 5 * 10**9}


@dataclass
class Meter:
    """Count the real calls, apart from the counts of the engine."""

    asked: int = 0
    tokens: int = 0
    money: int = 0
    at_once: int = 0
    most_at_once: int = 0
    lanes: set[str] = field(default_factory=set)

    def enter(self, patch: pytest.MonkeyPatch) -> "Meter":
        """Count every question to a scripted model."""
        ask = ScriptedModel.ask

        async def counted(model: ScriptedModel, request: ModelRequest) -> Answer:
            self.asked += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await asyncio.sleep(0)
            try:
                answer = await ask(model, request)
            finally:
                self.at_once -= 1
            if answer.usage:
                self.tokens += answer.usage.total
                self.money += PRICE.cost(answer.usage)
            return answer

        patch.setattr(ScriptedModel, "ask", counted)
        return self


def tree(seed: int, size: int) -> tuple[Plan, list[Part]]:
    """Return a plan with random dependencies, and the answers of its workers."""
    chance = random.Random(seed)
    ids = [f"t{number}" for number in range(size)]
    tasks, parts = [], []
    for at, id in enumerate(ids):
        needs = [other for other in ids[:at] if chance.random() < 0.3]
        tasks.append(step(id, *needs, checks=(), max_retries=1, estimated_tool_calls=6))
        looks = [{"calls": [calls("list_files")]} for _ in range(chance.randrange(3))]
        parts.append(worker(id, *looks, f"{id} is answered: {chance.random()} and nothing else."))
    return plan(*tasks), parts


async def served(
    project: Path, parts: list[Part], run: str, limits: RunBudget, made: Plan
) -> RunResult:
    """Serve a run as a new process does: everything is opened anew."""
    play = f"play:{project.parent / f'{project.name}.play.yaml'}"
    prices = {play: {"input": "0.15", "output": "0.60"}}
    async with opened(project, parts, llm__prices=prices) as mimir:
        if not run:
            run = await mimir.create_run(made, PLAN_PATH, only=(), limits=limits)
            return await mimir.drive(run, workers=3, apply="never", limits=limits, resumed=False)
        return await mimir.drive(run, workers=3, apply="never", limits=limits, resumed=True)


def within(facts: Facts, meter: Meter, limits: RunBudget) -> None:
    """Compare the stored counts with the limits and with the real calls."""
    row = facts.row

    def number(name: str) -> int:
        return int(str(row.get(name) or 0))

    tokens = number("tokensUsed") + number("tokensReserved")
    cost = number("costUsed") + number("costReserved")
    assert meter.asked <= number("callsUsed") + int(row["status"] == "failed")
    assert limits.max_calls is None or number("callsUsed") <= limits.max_calls
    assert limits.max_calls is None or meter.asked <= limits.max_calls
    assert limits.max_tokens is None or tokens <= limits.max_tokens
    assert limits.max_cost is None or cost <= limits.max_cost
    assert meter.tokens <= tokens
    assert cost > 0 or not meter.asked
    assert meter.money <= cost


def paused_truly(ending: RunResult, project: Path, flag: str) -> None:
    """A pause has its cause, a report of the completed part, and the command to continue."""
    assert (ending.exit_code, ending.outcome.value) == (75, "paused")
    assert "budget" in ending.message
    assert f"mimir resume {ending.run} {flag}" in ending.next_step
    report = (project / ending.report_path).read_text(encoding="utf-8")
    assert "paused" in report.casefold()


def limits_of(unit: Bound, bound: int) -> tuple[RunBudget, str]:
    """Return the limits of a run, and the limits of its resume."""
    match unit:
        case "calls":
            return RunBudget(max_calls=bound), "--max-calls"
        case "tokens":
            return RunBudget(max_tokens=bound), "--max-tokens"
        case _:
            return RunBudget(max_cost=bound), "--max-cost"


async def spent(seed: int, size: int, first: int, *, unit: Bound, meter: Meter) -> int:
    """Run a tree with a budget that is raised bit by bit, to its end; how often it paused."""
    made, parts = tree(seed, size)
    with tempfile.TemporaryDirectory() as room:
        project = start(Path(room))
        run, bound, pauses = "", first, 0
        for _ in range(RESUMES):
            limits, flag = limits_of(unit, bound)
            ending = await served(project, parts, run, limits, made)
            run = ending.run
            facts = await gather(project, run)
            within(facts, meter, limits)
            if ending.exit_code != 75:
                break
            paused_truly(ending, project, flag)
            pauses += 1
            bound += RAISED[unit] + (seed % 7 if unit == "calls" else 0)
        assert set(facts.statuses.values()) == {"completed"}, ending
        assert invariants.broken(facts) == []
        return pauses


@pytest.mark.parametrize("unit", ["calls", "tokens", "money"])
def test_no_tree_of_tasks_goes_over_its_budget(
    unit: Bound, cases: Cases, monkeypatch: pytest.MonkeyPatch
):
    pauses: list[int] = []
    together: list[int] = []

    @settings(
        max_examples=sized(small=1, ci=8, full=60),
        deadline=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.integers(0, 10**6), st.integers(2, MOST_TASKS), st.integers(0, 9))
    def holds(seed: int, size: int, first: int) -> None:
        with monkeypatch.context() as patch:
            meter = Meter().enter(patch)
            least, more = FIRST[unit]
            bound = least + first * more
            with cases.case((seed, size, bound)):
                made = asyncio.run(spent(seed, size, max(1, bound), unit=unit, meter=meter))
                pauses.append(made)
                together.append(meter.most_at_once)

    holds()
    assert max(pauses, default=0) > 0, "no budget was ever used up"


async def test_the_time_of_a_run_is_bounded_over_restarts(
    cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    meter = Meter().enter(monkeypatch)
    made, parts = tree(4, 4)
    project = start(tmp_path)
    with cases.case("time"):
        ending = await served(project, parts, "", RunBudget(seconds=0.000_001), made)
        assert ending.exit_code == 75
        assert "--time-limit" in ending.next_step
        assert (project / ending.report_path).is_file()
        asked = meter.asked
        again = await served(project, parts, ending.run, RunBudget(), made)
        assert again.exit_code == 75, "a restart brings no time back"
        assert meter.asked == asked
        done = await served(project, parts, ending.run, RunBudget(seconds=3600), made)
        assert done.exit_code == 0
