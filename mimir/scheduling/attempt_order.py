"""Order of attempts: at once, or as in an earlier run that is replayed."""


class AttemptOrder:
    """Order in which attempts start and are merged; this one makes none wait."""

    async def before_start(self, task: str, attempt: int) -> None:
        """Wait until the attempt may load its base and its input."""

    def started(self, task: str, attempt: int) -> None:
        """Record that the attempt has loaded its base and its input."""

    async def before_merge(self, task: str, attempt: int) -> None:
        """Wait until the attempt may be merged."""

    def done(self, task: str, attempt: int) -> None:
        """Record that this process has finished with the attempt."""
