"""Child watcher for Python 3.11: the event loop watches a descriptor of the process."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import TypeVarTuple

Given = TypeVarTuple("Given")

_LOG = logging.getLogger("asyncio")


# Before 3.12 Python starts a thread for each program, as expensive as the program. Its own watcher
# for descriptors loses them when the running loop is set again, which LangGraph does at each step.
if sys.version_info < (3, 12) and sys.platform == "linux":

    class _ByDescriptor(asyncio.ThreadedChildWatcher):
        """Watches through a pidfd; through a thread if the kernel has none left."""

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
        """Return the exit code of an ended process; 255, as asyncio does, if it is unknown."""
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:
            _LOG.warning("Unknown child process pid %d, will report returncode 255", pid)
            return 255
        return os.waitstatus_to_exitcode(status)


def listen() -> None:
    """Install the watcher, unless the application chose another one."""
    if sys.version_info < (3, 12) and sys.platform == "linux":
        chosen = asyncio.get_child_watcher()  # pyright: ignore[reportDeprecated]
        if type(chosen) is asyncio.ThreadedChildWatcher:
            asyncio.set_child_watcher(_ByDescriptor())  # pyright: ignore[reportDeprecated]
