"""What a person must know of the machine to believe a figure of time."""

import os
from dataclasses import dataclass

BUSY = 0.5
"""Programs that wait for each core, on the average of a minute; above this, times are not to be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInfo:
    """What it has, and how much of that is in use."""

    cores: int
    load: float
    """Programs that want to run, on the average of the last minute."""

    def warnings(self) -> list[str]:
        """Say what speaks against its figures of time."""
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
    """Look at this machine."""
    return MachineInfo(cores=len(os.sched_getaffinity(0)), load=round(os.getloadavg()[0], 2))
