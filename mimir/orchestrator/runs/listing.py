"""Choice and list of a project's runs, from the store alone and without heavy imports."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from mimir.domain import money
from mimir.domain.clock import moment
from mimir.domain.ids import PROJECT_PREFIX
from mimir.domain.task_states import RUN_ENDED, shown_state
from mimir.domain.value_class import value_class
from mimir.errors import UsageError
from mimir.store.protocol import ReadOps, Where
from mimir.store.records.run_records import RunOverviewRecord
from mimir.store.run_reading import (
    NEWEST_FIRST,
    count_completed_tasks,
    count_open_questions,
    find_records,
    load_run,
    load_run_overviews,
)

SHOWN_IDS = 5


def find_id(
    reads: ReadOps,
    project_id: str,
    run: str | None,
    *,
    resumable: bool = False,
    planning: bool = False,
) -> str:
    """Return a run's id: exact, by a unique prefix, or the newest.

    Args:
        reads: One view of the store.
        project_id: The project.
        run: An id or its beginning. None: the newest run that worked on tasks.
        resumable: The newest run that has not ended counts first.
        planning: A planning run counts if no run worked on tasks.

    Raises:
        UsageError: There is none, with the nearest ids, or several begin with `run`.
    """
    if run is None and not resumable:
        # The usual question must not read a thousand runs.
        # Of the kind `execute`, todo lists alone are read-only: no agent works on them.
        worked: Where = {"kind": "execute", "isReadOnly": ("!=", True)}
        where: Where = {"projectId": project_id, **worked}
        newest = find_records(reads, RunOverviewRecord, where, order=NEWEST_FIRST, limit=1)
        if newest:
            return newest[0].id
    if run is not None:
        # A whole id needs no list of all runs either.
        where = {"projectId": project_id, "id": run}
        if find_records(reads, RunOverviewRecord, where, limit=1):
            return run
    known = load_run_overviews(reads, project_id)
    if run is not None:
        id = match_id(run, {one.id: one.display_title for one in known}, "runs")
        # The last step raises, and names the nearest ids.
        return id or load_run(reads, run).id
    known = [one for one in known if not one.is_todo_list]
    unfinished = [one for one in known if one.status not in RUN_ENDED]
    executed = [one for one in known if one.kind != "plan"]
    wanted = (unfinished if resumable else []) or executed or (known if planning else [])
    if wanted:
        return wanted[0].id
    if unfinished:
        raise UsageError(
            f"No run has worked on tasks yet; {unfinished[0].id} is still planning.",
            next_step=f"Look at it: mimir show {unfinished[0].id}  Continue it: mimir resume",
        )
    raise UsageError("This project has no run yet.", next_step='Start one: mimir execute "REQUEST"')


def match_id(prefix: str, titles: Mapping[str, str], nouns: str) -> str:
    """Return the id that equals or begins with `prefix`; empty: there is none.

    Raises:
        UsageError: Several ids begin with it; the error lists them with their titles.
    """
    near = [prefix] if prefix in titles else [id for id in titles if id.startswith(prefix)]
    if len(near) > 1:
        named = [f"{id} ({titles[id]})" if titles[id] else id for id in near[:SHOWN_IDS]]
        more = f" and {len(near) - SHOWN_IDS} more" if len(near) > SHOWN_IDS else ""
        raise UsageError(
            f"{len(near)} {nouns} begin with {prefix!r}.",
            next_step=f"Name one: {', '.join(named)}{more}",
        )
    return near[0] if near else ""


@value_class
class RunFilter:
    """Which runs of a project are listed."""

    kind: str = ""
    """Empty: every kind."""
    agent: str = ""
    """Address of an invoked definition, also without its prefix. Empty: any."""
    since: str = ""
    """ISO-8601 UTC. Empty: any age."""

    def admits(self, run: RunOverviewRecord) -> bool:
        """Return whether a run is listed."""
        address = run.agent.removeprefix(PROJECT_PREFIX)
        named = self.agent.removeprefix(PROJECT_PREFIX)
        return (
            self.kind in ("", run.kind)
            and (not named or named in (address, address.rpartition("/")[2]))
            and run.created_at >= self.since
        )


ALL_RUNS = RunFilter()


def list_runs(
    reads: ReadOps,
    project_id: str,
    dead: Collection[str],
    now: datetime,
    wanted: RunFilter = ALL_RUNS,
) -> Sequence[Mapping[str, object]]:
    """Return the runs of a project as JSON values, newest first."""
    done, at = count_completed_tasks(reads), reads.now()
    asked = count_open_questions(reads, project_id)
    return [
        _run_entry(
            one,
            done.get(one.id, 0),
            shown_state(one.shown_status(at, dead), is_read_only=one.is_read_only),
            now,
        )
        | ({"open_questions": asked[one.id]} if one.id in asked else {})
        for one in load_run_overviews(reads, project_id)
        if wanted.admits(one)
    ]


def _run_entry(run: RunOverviewRecord, done: int, status: str, now: datetime) -> dict[str, object]:
    return {
        "run": run.id,
        "title": run.display_title,
        "kind": run.kind,
        "status": status,
        "tasks": run.task_count,
        "completed": done,
        "calls": run.calls_used,
        "tokens": run.tokens_used,
        "cost": money.format_money(run.cost_used) if run.prices or run.cost_used else None,
        "plan": run.plan_path,
        "started": run.created_at,
        "finished": run.finished_at or None,
        "age_seconds": round(max(0.0, (now - moment(run.created_at)).total_seconds()), 3),
        **(_invocation(run, now) if run.kind == "agent" else {}),
    }


def _invocation(run: RunOverviewRecord, now: datetime) -> Mapping[str, object]:
    ended = moment(run.finished_at) if run.finished_at else now
    return {
        "agent": run.agent,
        "session": run.session_id or None,
        "parent": run.parent_run or None,
        "depth": run.depth,
        "assurance": run.assurance or None,
        "started_at": run.created_at,
        "seconds": round(max(0.0, (ended - moment(run.created_at)).total_seconds()), 3),
    }
