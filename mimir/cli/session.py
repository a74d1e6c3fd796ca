"""What every command has: the project, the streams, `--store`, `--json` and `--debug`, before the command's name or behind it."""

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from mimir.cli.console import Console
    from mimir.cli.facade import Mimir
    from mimir.settings import LoadedSettings

T = TypeVar("T")

ROOM = ".mimir"
PLAY = "play:"
"""How the name of a scripted model begins."""

Store = Annotated[
    str,
    typer.Option("--store", metavar="URI", help="Where runs are kept; default: .mimir/mimir.db."),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON on the standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """The options that go with every command."""

    store: str = ""
    json: bool = False


class CommandSession:
    """One command under way."""

    def __init__(
        self, *, project: Path, console: "Console", store: str = "", json: bool = False
    ) -> None:
        self.project = project
        self.console = console
        self.store = store
        self.json = json
        self.record: Path | None = None
        """File that runs are recorded in; None: they are not."""
        self.replay: Path | None = None
        """Recording that answers in place of every model; None: models are asked."""

    def load(self, flags: Mapping[str, object] | None = None) -> "LoadedSettings":
        """Read the settings, flags on top; what a person should know of them is said at once.

        Raises:
            ConfigurationError: They cannot be used.
        """
        from mimir import settings

        given = {path: value for path, value in (flags or {}).items() if value is not None}
        store = {"store": self.store} if self.store else {}
        loaded = settings.load(self.project, {**given, **store})
        for warning in loaded.warnings:
            self.console.note(f"warning: {warning}")
        return loaded

    def require_model(self, loaded: "LoadedSettings") -> None:
        """Refuse what would ask a model that nobody can ask, before the heavy libraries are loaded to find out.

        Raises:
            ConfigurationError: The key is missing.
        """
        if self.replay is not None:
            return
        from mimir.domain.agent import ROLES
        from mimir.llm.config import EndpointConfig, split_provider

        settings = loaded.settings
        names = {settings.role(role).model or settings.llm.model for role in ROLES}
        if any(split_provider(name)[0] or name.startswith(PLAY) for name in names):
            return
        llm = settings.llm
        EndpointConfig(
            base_url=llm.base_url, api_key=settings.api_key, headers=llm.headers
        ).require_key()

    @asynccontextmanager
    async def open(
        self, loaded: "LoadedSettings", *, create: bool = True
    ) -> AsyncGenerator["Mimir"]:
        """Open the project; `create=False` makes nothing.

        Raises:
            UsageError: Nothing was ever made here.
        """
        from mimir.cli.facade import app

        if not create:
            self._require_room(loaded)
        tapes = {"record": self.record, "replay": self.replay}
        given = {name: self.project / path for name, path in tapes.items() if path is not None}
        async with AsyncExitStack() as stack:
            with self.show_wait("Opening the project", loaded):
                if loaded.settings.store:
                    from mimir.bootstrap import stores

                    await stores.check_connection(
                        loaded.settings
                    )  # the rest takes a second to load
                mimir = await stack.enter_async_context(
                    app().open(self.project, loaded, create=create, say=self.console.note, **given)
                )
            yield mimir

    async def glance(self, loaded: "LoadedSettings", run: str | None) -> "Mapping[str, object]":
        """Return where a run stands, without opening more than the store.

        Raises:
            UsageError: Nothing was ever made here, or there is no such run.
        """
        from mimir.cli.facade import glance

        self._require_room(loaded)
        return await glance().status(self.project, loaded, run, self.console.note)

    def _require_room(self, loaded: "LoadedSettings") -> None:
        from mimir.errors import UsageError

        if not (self.project / ROOM).is_dir():
            begun = "Go to the directory of the project; a clone of it joins with: mimir worker"
            raise UsageError(
                f"mimir was not used in this directory yet: there is no {ROOM} here.",
                next_step=begun
                if loaded.settings.store
                else 'Start with: mimir chain "what you want"',
            )

    def show_wait(self, what: str, loaded: "LoadedSettings") -> AbstractContextManager[None]:
        """Show on a terminal that something takes its time."""
        if self.json or not self.console.is_terminal:
            return nullcontext()
        from mimir.cli.live.views import show_wait_clock

        return show_wait_clock(self.console, what, color=loaded.color)

    def run(self, job: Coroutine[object, object, T]) -> T:
        """Run a job in an event loop; the first signal cancels it.

        Raises:
            asyncio.CancelledError: It was interrupted.
        """
        from mimir.cli.signals import SignalHandler

        return SignalHandler(self.console.leave).run(job)


def project_directory() -> Path:
    """Return the current directory: the project.

    Raises:
        UnavailableError: It was removed.
    """
    from mimir.errors import UnavailableError

    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UnavailableError(
            "The current directory was removed.", next_step="Go to a directory that is there."
        ) from None


def command(body: Callable[..., int]) -> Callable[..., int]:
    """Make a command of `body`, whose first parameter is the session: its options and the common ones; what it returns is the exit code."""

    def started(
        context: typer.Context, *, store: Store, as_json: Json, debug: Debug, **options: object
    ) -> int:
        from mimir.cli.console import Console

        before = context.obj if isinstance(context.obj, CommonOptions) else CommonOptions()
        session = CommandSession(
            project=project_directory(),
            console=Console.of_process(),
            store=store or before.store,
            json=as_json or before.json,
        )
        return body(session, **options)

    own = list(inspect.signature(body).parameters.values())[1:]
    added = [
        inspect.Parameter("store", inspect.Parameter.KEYWORD_ONLY, default="", annotation=Store),
        inspect.Parameter(
            "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json
        ),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug),
    ]
    context = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    parameters = [context, *(p.replace(kind=p.KEYWORD_ONLY) for p in own), *added]
    started.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]  read by typer
    started.__doc__, started.__name__ = body.__doc__, body.__name__
    return started
