"""Requirements on a killed and resumed run: the end of the run without kills, every invariant, nothing lost, nothing doubled."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mimir.domain.task_states import RUN_ENDED
from tests.support.crash.crash_site import KEY, Ground
from tests.support.invariants import broken, listing
from tests.support.run_facts import Facts, Outside


@dataclass(frozen=True, kw_only=True)
class End:
    """Values that must not depend on kills."""

    code: int
    status: str
    tree: str
    """Of the run's line."""
    files: Mapping[str, str]
    """Of the user's directory."""
    tasks: Mapping[str, tuple[object, ...]]
    response: tuple[object, ...]
    """(status, assurance) of the one response of an invocation; empty: there is none."""
    requests: Counter[str]
    """Lane → how often its model was asked."""
    effects: Counter[str]


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """The problems found, and the cost of the kills."""

    problems: tuple[str, ...]
    asked_again: int
    """Model calls that were made again."""
    run_again: int
    """Effects that were made again."""
    lost: int
    """Calls that are recorded and never arrived, tasks that did not come to their end."""
    doubled: int
    """Calls and effects that were made again though their outcome was known, or more than once a death."""


def end_of(ground: Ground, code: int) -> End:
    """Return how a run ended."""
    facts = ground.facts()
    return End(
        code=code,
        status=str(facts.row["status"]),
        tree=str(facts.row["headTree"]),
        files={
            p: h for p, h in _listing(ground).items() if not p.startswith((".mimir/", "chains/"))
        },
        tasks=_task_rows(facts),
        response=_response(facts),
        requests=Counter(call["lane"].partition("/")[2] for call in ground.requests()),
        effects=Counter(ground.effects()),
    )


def judge(ground: Ground, code: int, wanted: End) -> Ruling:
    """Compare a run's end with the one without kills."""
    facts = ground.facts()
    if facts.row["status"] not in RUN_ENDED:
        return _unended(ground, facts, code)
    end = end_of(ground, code)
    asked, asked_wrong = _again(
        end.requests, wanted.requests, sum((d.models for d in ground.deaths), Counter[str]())
    )
    ran, ran_wrong = _again(
        Counter(line.split(" ")[0] for line in end.effects.elements()),
        Counter(line.split(" ")[0] for line in wanted.effects.elements()),
        sum((d.tools for d in ground.deaths), Counter[str]()),
    )
    problems = [*broken(facts, _outside(ground)), *_leftovers(ground)]
    problems += [
        f"{name} is {mine!r}, without kills {theirs!r}"
        for name in ("code", "status", "tree", "files", "tasks", "response")
        if (mine := getattr(end, name)) != (theirs := getattr(wanted, name))
    ]
    wrong = [*asked_wrong, *ran_wrong]
    allowed = sum(death.in_flight for death in ground.deaths)
    if asked > allowed:
        wrong.append(f"{asked} model calls were made again, {allowed} tasks were in flight")
    lost = sum(one.startswith("I6: calls are recorded") for one in problems)
    return Ruling(
        problems=(*problems, *wrong),
        asked_again=asked,
        run_again=ran,
        lost=lost,
        doubled=len(wrong),
    )


def _again(
    times: Counter[str], wanted: Counter[str], open_ones: Counter[str]
) -> tuple[int, list[str]]:
    """Count repeated calls, and name needless ones: only a call without an outcome may be repeated, once a death."""
    again = times - wanted
    wrong = [
        f"{lane} was asked or ran {more} times more, {open_ones[lane]} calls of it were open at a death"
        for lane, more in again.items()
        if more > open_ones[lane]
    ]
    missing = wanted - times
    wrong += [f"{lane} was asked or ran {less} times less" for lane, less in missing.items()]
    return again.total(), wrong


def _outside(ground: Ground) -> Outside:
    return Outside(
        secrets=(KEY,),
        before=ground.before,
        requests=[call["lane"].partition("/")[2] for call in ground.requests()],
        in_flight=[death.in_flight for death in ground.deaths],
    )


def _unended(ground: Ground, facts: Facts, code: int) -> Ruling:
    said = max(ground.root.glob("err-*"), key=lambda path: path.stat().st_mtime)
    words = said.read_text(encoding="utf-8")[-600:]
    problem = f"the run stands at {facts.row['status']} after exit {code}: {words}"
    return Ruling(problems=(problem,), asked_again=0, run_again=0, lost=1, doubled=0)


def _leftovers(ground: Ground) -> list[str]:
    """Name the remains of a killed process that were not cleared away."""
    work = ground.project / ".mimir" / "work"
    run = work / ground.find_run()
    left = [path.name for path in (work / "checks").glob("*")]
    left += [f"{run.name}/{path.name}" for path in run.glob("*")] or (
        [run.name] if run.exists() else []
    )
    left += [path.name for path in work.glob("*") if path.name not in KEPT and path != run]
    return [f"{sorted(left)} is left in .mimir/work"] if left else []


KEPT = {"checks", "history.git", "locks", "owners"}


def _listing(ground: Ground) -> dict[str, str]:
    return listing(ground.project)


def _response(facts: Facts) -> tuple[object, ...]:
    found = [one for one in facts.nodes["Artifact"] if one["kind"] == "response"]
    return tuple(
        (given["status"], given["assurance"]["level"])
        for one in found
        for given in (json.loads(one["text"]),)
    )


def _task_rows(facts: Facts) -> dict[str, tuple[object, ...]]:
    return {
        id: (
            row["status"],
            row.get("cause"),
            row.get("attemptNumber"),
            row.get("qcScore"),
            tuple(row.get("passedChecks") or ()),  # type: ignore[arg-type]
            tuple(row.get("filesChanged") or ()),  # type: ignore[arg-type]
        )
        for id, row in facts.tasks.items()
    }
