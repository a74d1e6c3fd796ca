"""Summary of a run, computed batch by batch: memory does not hold the attempts of all tasks at once."""

from mimir.domain.task_states import RunStatus
from mimir.reporting.summary.run_loader import RunLoader
from mimir.reporting.summary.summary import RunSummary, SummaryBuilder
from mimir.store.protocol import ReadOps


def summary(reads: ReadOps, run: str, outcome: RunStatus | None = None) -> RunSummary:
    """Return the summary of a run as it stands.

    Args:
        reads: One view of the store.
        run: Id.
        outcome: As in `summarise`.

    Raises:
        UsageError: The run does not exist.
        StoreError: A stored record cannot be read; `mimir verify` names it.
    """
    gathering = RunLoader(reads, run)
    summing = SummaryBuilder(gathering.events, gathering.seconds)
    for part in gathering.parts():
        summing.add_part(part)
        del part  # otherwise the part stays in memory while the next one is read
    return summing.finish(gathering.finish(), outcome)
