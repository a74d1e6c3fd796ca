"""Facts of the machine that affect measured times."""

import os
from dataclasses import dataclass

BUSY = 0.5
"""Runnable programs for each core, averaged over a minute; above it, times are unreliable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInfo:
    """Cores of the machine and their load."""

    cores: int
    load: float
    """Runnable programs, averaged over the last minute."""

    def warnings(self) -> list[str]:
        """Return the reasons to distrust measured times."""
        found: list[str] = []
        if self.cores < 2:
            found.append(
                "this machine has one core: model server and engine take it from each other"
            )
        if self.load > BUSY * self.cores:
            found.append(
                f"this machine is busy (load {self.load:.1f} on {self.cores} cores): "
                "times are those of all that runs here; counts are not touched by it"
            )
        return found


def look() -> MachineInfo:
    """Return the facts of this machine."""
    # The cores that this process may use, not those of the machine.
    return MachineInfo(cores=len(os.sched_getaffinity(0)), load=round(os.getloadavg()[0], 2))
