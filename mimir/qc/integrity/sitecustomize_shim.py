"""Leads a Python that was not found on the PATH to `shim.sh`: it lies, as `sitecustomize.py`, on the PYTHONPATH that `with_shims.sh` sets.

A Python that is named by its path (by a make file, by the first line of a script, by a program that starts another with its own Python) imports
it before all else, and gives way to the shim in the same process. One that the shim has started goes on. Any Python may meet it.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_PLACE = os.path.dirname(_HERE)  # noqa: PTH120


def reroute():
    """Go on as the shim with this interpreter and its words; return where that is not possible, or this is no interpreter of its own."""
    try:
        own, running = (os.path.realpath(path) for path in (sys.executable, "/proc/self/exe"))
        with open("/proc/self/cmdline", "rb") as told:  # noqa: PTH123
            words = told.read().split(b"\0")[1:-1]
        if own == running:  # else Python is a part of another program
            # Python 2 may read this.
            os.execv("/bin/sh", ["sh", _PLACE + "/shim", sys.executable] + words)  # noqa: RUF005
    except OSError:
        pass


if __name__ == "sitecustomize":
    if os.environ.pop("MIMIR_SHIMMED", None):
        os.environ["PATH"] = _PLACE + os.pathsep + os.environ.get("PATH", os.defpath)
    else:
        reroute()
    sys.path[:] = [path for path in sys.path if path != _HERE]
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")  # the one that would stand here
