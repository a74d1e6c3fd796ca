"""Shim that replaces a Python started by path with `shim.sh`.

A Python that is named by its path (in a Makefile, a script's first line, by another program) is not found on the PATH. It imports this
module first and becomes the shim in the same process. A Python that the shim started continues. Any version of Python may run this.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_PLACE = os.path.dirname(_HERE)  # noqa: PTH120


def reroute():
    """Become the shim with this interpreter and its words; return if that is impossible."""
    try:
        own, running = (os.path.realpath(path) for path in (sys.executable, "/proc/self/exe"))
        with open("/proc/self/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read().split(b"\0")[1:-1]
        if own == running:  # otherwise Python is embedded in another program
            # Python 2 must be able to parse this.
            os.execv("/bin/sh", ["sh", _PLACE + "/shim", sys.executable] + words)  # noqa: RUF005
    except OSError:
        pass


if __name__ == "sitecustomize":
    if os.environ.pop("MIMIR_SHIMMED", None):
        os.environ["PATH"] = _PLACE + os.pathsep + os.environ.get("PATH", os.defpath)
    else:
        reroute()
    # The project's own sitecustomize, if any, must be imported as usual.
    sys.path[:] = [path for path in sys.path if path != _HERE]
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")  # the module that this one replaced
