"""How the end of a program is heard of: by the event loop, through a descriptor of the process.

Python does so itself since 3.12. Before, it starts a thread for each program, which costs about as much as to start the program. Its own
class for descriptors forgets them whenever the loop is set that runs already, and LangGraph sets it at every step.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import TypeVarTuple

Given = TypeVarTuple("Given")

_LOG = logging.getLogger("asyncio")


if sys.version_info < (3, 12) and sys.platform == "linux":

    class _ByDescriptor(asyncio.ThreadedChildWatcher):
        """What Python 3.12 does; a thread where the kernel has no such descriptors, or none left."""

        def add_child_handler(
            self, pid: int, callback: Callable[[int, int, *Given], object], *args: *Given
        ) -> None:
            try:
                descriptor = os.pidfd_open(pid)
            except OSError:
                super().add_child_handler(pid, callback, *args)
                return
            loop = asyncio.get_running_loop()

            def ended() -> None:
                loop.remove_reader(descriptor)
                os.close(descriptor)
                callback(pid, _exit_code(pid), *args)

            loop.add_reader(descriptor, ended)

    def _exit_code(pid: int) -> int:
        """Take the exit code of a process that has ended; 255, as asyncio has it, if somebody took it before."""
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:
            _LOG.warning("Unknown child process pid %d, will report returncode 255", pid)
            return 255
        return os.waitstatus_to_exitcode(status)


def listen() -> None:
    """Have loops hear of programs that are started from now on; an application that has chosen another way keeps it."""
    if sys.version_info < (3, 12) and sys.platform == "linux":
        chosen = asyncio.get_child_watcher()  # pyright: ignore[reportDeprecated]
        if type(chosen) is asyncio.ThreadedChildWatcher:
            asyncio.set_child_watcher(_ByDescriptor())  # pyright: ignore[reportDeprecated]
