"""Leads a Python that was not found on the PATH to `shim.sh`: it lies, as `sitecustomize.py`, on the PYTHONPATH that `with_shims.sh` sets.

A Python that is named by its path, by a make file or the first line of a script, imports it before all else, and gives way to the shim in the
same process. Any Python of version 3 may meet it.
"""

import os
import sys


def reroute() -> None:
    """Go on as the shim with this interpreter and its words; return where that is not possible, or this is no interpreter of its own."""
    try:
        own, running = (os.path.realpath(path) for path in (sys.executable, "/proc/self/exe"))
        with open("/proc/self/cmdline", "rb") as told:  # noqa: PTH123
            words = told.read().split(b"\0")[1:-1]
        if own == running:  # else Python is a part of another program
            place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
            os.execv("/bin/sh", ["sh", place + "/shim", sys.executable, *words])
    except OSError:
        pass


if __name__ == "sitecustomize":
    reroute()
