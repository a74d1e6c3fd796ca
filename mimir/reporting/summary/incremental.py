"""A run's summary as it comes into being: tasks that have ended are taken in while others are worked on."""

from mimir.domain.task_states import RunStatus
from mimir.reporting.summary.run_loader import LoadedRows, RunLoader
from mimir.reporting.summary.summary import RunSummary, SummaryBuilder
from mimir.store.protocol import ReadOps


class IncrementalSummary:
    """Reads one run and sums it up."""

    def __init__(self, run: str) -> None:
        """Begin with nothing.

        Args:
            run: Id.
        """
        self.run = run
        self._begin()

    def _begin(self) -> None:
        self._gathering = RunLoader(self.run)
        self._summing = SummaryBuilder(self._gathering.events, self._gathering.seconds)

    def look(self, reads: ReadOps) -> LoadedRows:
        """See some of the tasks that have ended, so that less is left for the end."""
        return self._gathering.ahead(reads)

    def take(self, seen: LoadedRows) -> None:
        """Take in what was seen, each look before the next one."""
        gathering, summing = self._gathering, self._summing
        self._begin()  # whatever fails now: nothing is half taken in
        summing.take(gathering.take(seen))
        self._gathering, self._summing = gathering, summing

    def summary(self, reads: ReadOps, outcome: RunStatus | None = None) -> RunSummary:
        """Take in what is left, and return the summary; it is the same, however much was taken in before.

        In another view it may be asked again only where all tasks have ended.

        Args:
            reads: One view of the store.
            outcome: As in `summarise`.

        Raises:
            UsageError: There is no such run.
            StoreError: What is stored cannot be read; `mimir verify` names the record.
        """
        for part in self._gathering.rest(reads):
            self._summing.take(part)
            del part  # else it would stay until the next one has been read beside it
        return self._summing.done(self._gathering.done(reads), outcome)


def summary(reads: ReadOps, run: str) -> RunSummary:
    """Return the summary of a run as it stands; errors as above."""
    return IncrementalSummary(run).summary(reads)
