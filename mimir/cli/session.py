"""One command invocation: the project, the streams and the options of every command."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mimir.domain.value_class import value_class
from mimir.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    from mimir.bootstrap.stored_project import ProjectPlace, StoredProject
    from mimir.cli.console import Console
    from mimir.orchestrator.api import Mimir
    from mimir.settings.layers import LoadedSettings
    from mimir.store.protocol import ReadOps

T = TypeVar("T")

STATE_DIR = ".mimir"
DEFAULT_STORE = ".mimir/mimir.db"
DECLINED = 1
"""Exit code if the confirmation was declined."""

Store = Annotated[
    str, typer.Option("--store", metavar="URI", help="Store of the runs; default: .mimir/mimir.db.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
# Every command takes them too, but only `mimir --help` lists them.
_OwnStore = Annotated[str, typer.Option("--store", metavar="URI", hidden=True)]
_OwnJson = Annotated[bool, typer.Option("--json", hidden=True)]
_OwnDebug = Annotated[bool, typer.Option("--debug", hidden=True)]


@value_class
class CommonOptions:
    """Options given before the name of the command."""

    store: str = ""
    json: bool = False


class CommandSession:
    """One command invocation."""

    def __init__(
        self, *, project: Path, console: "Console", store: str = "", json: bool = False
    ) -> None:
        self.project = project
        self.console = console
        self.store = store
        self.json = json
        self.record: Path | None = None
        """Recording to write; None: nothing is recorded."""
        self.replay: Path | None = None
        """Recording that answers instead of the models; None: the models answer."""
        self._warnings: set[str] = set()

    def load(self, flags: Mapping[str, object] | None = None) -> "LoadedSettings":
        """Load the settings with these flags on top, and print their warnings once."""
        from mimir.settings.layers import load

        # A flag that was not given must not hide a weaker layer.
        given = {path: value for path, value in (flags or {}).items() if value is not None}
        store = {"store": self.store} if self.store else {}
        loaded = load(self.project, {**given, **store})
        for warning in loaded.warnings:
            if warning not in self._warnings:
                self.console.note(f"warning: {warning}")
        self._warnings.update(loaded.warnings)
        return loaded

    def require_model(self, loaded: "LoadedSettings") -> None:
        """Require the key of the models, before the heavy libraries are loaded."""
        if self.replay is not None:
            return
        from mimir.bootstrap.models.endpoints import models_of_roles, require_keys

        require_keys(loaded.settings, models_of_roles(loaded.settings))

    @asynccontextmanager
    async def open(
        self, loaded: "LoadedSettings", *, create: bool = True
    ) -> AsyncGenerator["Mimir"]:
        """Open the project; with `create=False` it must exist, and nothing is created."""
        if not create:
            self._require_state_dir(loaded.settings.store)
        async with AsyncExitStack() as stack:
            with self.show_wait("Opening the project", loaded):
                if loaded.settings.store:
                    from mimir.bootstrap import stores

                    # A store that is down is reported at once: the rest takes a second to import.
                    await stores.check_connection(loaded.settings)
                from mimir.bootstrap import app

                opened = app.open(
                    self.project,
                    loaded,
                    create=create,
                    say=self.console.note,
                    record=self.record and self.project / self.record,
                    replay=self.replay and self.project / self.replay,
                )
                mimir = await stack.enter_async_context(opened)
            yield mimir

    @asynccontextmanager
    async def open_store(self, loaded: "LoadedSettings") -> AsyncGenerator["StoredProject"]:
        """Open the store of the project alone; nothing is created."""
        from mimir.bootstrap import stored_project

        self._require_state_dir(loaded.settings.store)
        opening = stored_project.open_stored_project(self.project, loaded, self.console.note)
        async with opening as opened:
            yield opened

    def use_store(self, work: "Callable[[StoredProject], Awaitable[T]]") -> T:
        """Run `work` with the open store of the project; nothing is created."""
        loaded = self.load()

        async def job() -> T:
            async with self.open_store(loaded) as opened:
                return await work(opened)

        return self.run(job())

    def use_project(
        self, work: "Callable[[Mimir], Awaitable[T]]", loaded: "LoadedSettings | None" = None
    ) -> T:
        """Run `work` with the open project, which must exist; `loaded`: its settings, if at hand."""
        settings = loaded or self.load()

        async def job() -> T:
            async with self.open(settings, create=False) as mimir:
                return await work(mimir)

        return self.run(job())

    def show(self, shape: Mapping[str, object], *lines: str) -> int:
        """Print an object with `--json`, otherwise the lines; return the exit code 0."""
        if self.json:
            self.console.json({"schema": 1, **shape})
        elif lines:
            # One text: each line would be flushed, and a run may have thousands of tasks.
            self.console.say("\n".join(lines))
        return 0

    def look(self, work: "Callable[[ReadOps, ProjectPlace], T]") -> T:
        """Run `work` on one view of the project's store; nothing is created.

        A SQLite file is opened without settings, threads and event loop; a server takes them all.
        """
        from mimir.bootstrap import local_store

        uri = local_store.find_uri(self.store)
        if uri is not None:
            self._require_state_dir(uri)
            return local_store.look(self.project, uri, work, say=self.console.note)
        return self.use_store(lambda opened: opened.store.read(lambda reads: work(reads, opened)))

    def has_store(self, loaded: "LoadedSettings") -> bool:
        """Return whether the project has a store, or the settings name one."""
        return bool(loaded.settings.store) or (self.project / DEFAULT_STORE).exists()

    def _require_state_dir(self, store: str) -> None:
        if not (self.project / STATE_DIR).is_dir():
            join = "Go to the project's directory. A clone of it joins a run with: mimir worker"
            raise UsageError(
                f"This directory is not a project of mimir yet: it has no {STATE_DIR}.",
                next_step=join if store else 'Start: mimir chain "REQUEST"',
            )

    def show_wait(
        self, label: str, loaded: "LoadedSettings", step: Callable[[], str] = str
    ) -> AbstractContextManager[None]:
        """Show a clock and the current step on a terminal while the block runs."""
        if self.json or not self.console.is_terminal:
            return nullcontext()
        from mimir.cli.live.views import show_wait_clock

        return show_wait_clock(self.console, label, step, color=loaded.color)

    def run(self, job: Coroutine[object, object, T]) -> T:
        """Run a job in an event loop; a signal raises `asyncio.CancelledError`."""
        from mimir.cli.signals import SignalHandler

        return SignalHandler(self.console.leave).run(job)


def project_directory() -> Path:
    """Return the current directory, which is the project."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UnavailableError(
            "The current directory was removed.", next_step="Change to a directory that exists."
        ) from None


def command(body: Callable[..., int], *, is_group: bool = False) -> Callable[..., int]:
    """Make a typer command of `body` and add the common options.

    The first parameter of `body` is the session; its result is the exit code. The body of a group
    runs only if no subcommand follows.
    """

    def invoke(
        context: typer.Context, *, store: str, as_json: bool, debug: bool, **options: object
    ) -> int:
        from mimir.cli.console import Console

        # The common options may precede or follow the name of the command.
        before = context.obj if isinstance(context.obj, CommonOptions) else CommonOptions()
        if is_group and context.invoked_subcommand is not None:
            context.obj = CommonOptions(store=store or before.store, json=as_json or before.json)
            return 0
        session = CommandSession(
            project=project_directory(),
            console=Console.of_process(),
            store=store or before.store,
            json=as_json or before.json,
        )
        return body(session, **options)

    def keyword(name: str, default: object, annotation: object) -> inspect.Parameter:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, kind, default=default, annotation=annotation)

    # Typer reads the options from the signature, so the common ones are added to it.
    own = list(inspect.signature(body).parameters.values())[1:]
    context = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    parameters = [
        context,
        *(p.replace(kind=p.KEYWORD_ONLY) for p in own),
        keyword("store", "", _OwnStore),
        keyword("as_json", False, _OwnJson),
        keyword("debug", False, _OwnDebug),
    ]
    invoke.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]  read by typer
    invoke.__doc__, invoke.__name__ = body.__doc__, body.__name__
    return invoke
