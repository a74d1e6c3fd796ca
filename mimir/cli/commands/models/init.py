"""`mimir init`: the first settings of a user, by at most four questions or by flags."""

from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

from mimir.cli.commands.options import MaxCalls, MaxCost
from mimir.cli.session import CommandSession
from mimir.errors import ConfigurationError, UnavailableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

    from mimir.bootstrap.models.setup import KeyPlace, ModelList, SetupChoice
    from mimir.settings.layers import LoadedSettings

T = TypeVar("T")

_PLACES: tuple["KeyPlace", ...] = ("variable", "file", "keyring")
_MOST_LISTED = 20

Provider = Annotated[str, typer.Option("--provider", metavar="NAME", help="Such as ollama.")]
BaseUrl = Annotated[str, typer.Option("--base-url", metavar="URL", help="Address, if not usual.")]
Model = Annotated[str, typer.Option("--model", metavar="NAME", help="Model of the provider.")]
Key = Annotated[
    str, typer.Option("--key", metavar="PLACE", help="Place of the key: variable, file, keyring.")
]
NoLimit = Annotated[bool, typer.Option("--no-limit", help="No limit of a run.")]
Project = Annotated[
    bool, typer.Option("--project", help="Also find the test command, for mimir.toml.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; the flags answer.")]


def init(
    session: CommandSession,
    provider: Provider = "",
    base_url: BaseUrl = "",
    model: Model = "",
    key: Key = "",
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    no_limit: NoLimit = False,
    project: Project = False,
    yes: Yes = False,
) -> int:
    """Write your first settings.

    These are provider, model, key and limit. It asks for each value without a flag. With --yes, every answer must be a flag; the key comes
    from its variable or from standard input. With --project, it finds the test command of the project,
    runs it once in the sandbox, and writes it to mimir.toml.
    """
    given = _Flags(session, provider, base_url, model, key, no_limit or None)
    given.limit = (max_calls, max_cost)
    return session.run(given.answer(yes=yes, project=project))


def _number_of(text: str, last: int) -> int | None:
    """Return the index that a number from 1 to `last` names; None: it is no such number."""
    return int(text) - 1 if text.isdecimal() and 1 <= int(text) <= last else None


def _read_limit(text: str) -> "tuple[int | None, Decimal | None] | None":
    """Return calls or cost of a limit, neither for an empty line; None: it is no limit."""
    from mimir.cli.arguments import amount

    if text.isdecimal():
        return (int(text), None) if int(text) else None
    try:
        return None, amount(text) if text else None
    except UsageError:
        return None


class _Flags:
    """The answers that flags give; the others are asked."""

    def __init__(
        self,
        session: CommandSession,
        provider: str,
        base_url: str,
        model: str,
        key: str,
        no_limit: bool | None,
    ) -> None:
        self.session = session
        self.console = session.console
        self.provider, self.base_url, self.model, self.key = provider, base_url, model, key
        self.no_limit = bool(no_limit)
        self.limit: tuple[int | None, str | None] = (None, None)

    @property
    def is_own_address(self) -> bool:
        """True for a server that no preset knows; only its user knows if it needs a key."""
        from mimir.settings.providers import PRESETS

        return self.console.can_ask and bool(self.base_url) and self.provider not in PRESETS

    async def answer(self, *, yes: bool, project: bool) -> int:
        """Ask, write the files, and print their paths."""
        from dataclasses import replace

        from mimir.bootstrap.models import setup

        if self.key and self.key not in _PLACES:
            raise UsageError(
                f"--key {self.key!r} is no place of a key.", next_step=f"Use {', '.join(_PLACES)}."
            )
        self._require_answers(yes=yes)
        loaded = self.session.load()
        if not self.provider:
            self.provider, self.base_url = await self._ask_provider()
        setup.require_provider(self.provider, self.base_url)
        choice = await self._choose_key(self._choice(), loaded)
        config = setup.endpoint_of(loaded, choice)
        listed = await setup.ask_models(config)
        if listed.problem:
            where = f"The endpoint {config.label}: {listed.problem}."
            if yes and not listed.is_reached:
                raise UnavailableError(
                    where, next_step="Start it, check the network, or correct --base-url."
                )
            self.console.note(f"warning: {where}")
        if not self.model:
            self.model = await self._ask_model(listed)
        elif listed.models and self.model not in listed.models:
            self.console.note(f"warning: {config.label} does not list {self.model!r}.")
        choice = await self._choose_limit(self._choice(choice), loaded)
        try:
            path, is_changed = setup.write_choice(choice, config)
        except ConfigurationError as error:
            if choice.key_place != "keyring" or self.key or not self.console.can_ask:
                raise
            # The answers so far stay: only the place of the key is asked again.
            self.console.note(f"warning: {error}")
            choice = replace(choice, key_place=await self._ask_place(choice, loaded, _PLACES[:2]))
            path, is_changed = setup.write_choice(choice, config)
        await self._report(choice, str(path), is_changed=is_changed, project=project)
        return 0

    def _require_answers(self, *, yes: bool) -> None:
        """Refuse to choose for the user: without a terminal, flags must answer everything."""
        if self.console.can_ask and not yes:
            return
        from mimir.settings.providers import PRESETS

        preset = PRESETS.get(self.provider)
        needs_key = preset is not None and not preset.is_local
        has_limit = self.no_limit or any(self.limit)
        missing = [
            flag
            for flag, is_given in (
                ("--yes", yes),
                ("--provider NAME", self.provider),
                ("--model NAME", self.model),
                ("--key variable|file|keyring", self.key or not needs_key),
                ("--max-calls N, --max-cost AMOUNT or --no-limit", has_limit),
            )
            if not is_given
        ]
        if missing:
            raise UsageError(
                f"No user can be asked here, and flags are missing: {', '.join(missing)}.",
                next_step="Example: mimir init --yes --provider ollama --model qwen3 --max-calls 500",
            )

    def _choice(self, before: "SetupChoice | None" = None) -> "SetupChoice":
        from mimir.bootstrap.models.setup import SetupChoice

        return SetupChoice(
            provider=self.provider,
            base_url=self.base_url,
            model=self.model,
            key_place=before.key_place if before else "",
            key=before.key if before else "",
        )

    async def _ask_provider(self) -> tuple[str, str]:
        """Return the name of a provider, and the address if it is the user's own."""
        from mimir.bootstrap.models import setup

        offers = await setup.find_providers()
        self._show([f"{one.title}{f' ({one.found})' if one.found else ''}" for one in offers])
        self.console.note("Another server: type its address, such as http://127.0.0.1:8000/v1")

        def read(text: str) -> "tuple[str, str] | None":
            if text.startswith(("http://", "https://")):
                name = setup.name_address(text)
                return (name, text) if name else None
            number = _number_of(text, len(offers))
            named = [one.name for one in offers if text.lower() in (one.name, one.title.lower())]
            known = offers[number].name if number is not None else "".join(named)
            return (known, self.base_url) if known else None

        return await self._ask(
            f"Provider (1-{len(offers)}, or an address):",
            read,
            f"a number from 1 to {len(offers)}, the name of a provider, or an address that begins "
            "with http:// or https://",
        )

    async def _ask_model(self, listed: "ModelList") -> str:
        models = listed.models[:_MOST_LISTED]
        if not models:
            return await self._ask("Name of the model:", str, "the name of a model")
        if len(listed.models) > len(models):
            self.console.note(f"The first {len(models)} of {len(listed.models)} models:")
        self._show(models)

        def read(text: str) -> str | None:
            number = _number_of(text, len(models))
            # A name of digits alone is a mistyped number.
            return models[number] if number is not None else ("" if text.isdecimal() else text)

        return await self._ask(
            f"Model (1-{len(models)}, or a name):",
            read,
            f"a number from 1 to {len(models)}, or the name of a model",
        )

    async def _choose_key(self, choice: "SetupChoice", loaded: "LoadedSettings") -> "SetupChoice":
        """Return the choice with the place of the key, and the key if it is to be stored."""
        from dataclasses import replace

        from mimir.bootstrap.models import setup
        from mimir.bootstrap.settings_files import own_file

        variable, value = setup.find_key(choice, loaded)
        place, key = self.key, ""
        if self.is_own_address and not place:
            hint = f"Key for {choice.base_url}, kept in {own_file()} (hidden; Enter: none):"
            key = await self.console.ask_line(hint, hidden=True)
            return replace(choice, key_place="file" if key else "", key=key)
        if not variable and not place:
            return choice
        if not place and value:
            place = await self._ask_place(choice, loaded, _PLACES)
        elif not place:
            hint = f"Key for {choice.provider}, kept in {own_file()} (hidden; Enter: set {variable} yourself):"
            key = await self.console.ask_line(hint, hidden=True)
            place = "file" if key else "variable"
        if place != "variable" and not key:
            key = value or await self._read_key(choice)
        return replace(choice, key_place=cast("KeyPlace", place), key=key)

    async def _ask_place(
        self, choice: "SetupChoice", loaded: "LoadedSettings", places: "Sequence[KeyPlace]"
    ) -> "KeyPlace":
        from mimir.bootstrap.models import setup
        from mimir.bootstrap.settings_files import own_file

        variable, _ = setup.find_key(choice, loaded)
        lines = [f"the variable {variable}, as now", f"the file {own_file()}", "the keyring"]
        last = len(places)
        self._show(lines[:last])
        number = await self._ask(
            f"Place of the key (1-{last}):",
            lambda text: _number_of(text, last),
            f"a number from 1 to {last}",
        )
        return places[number]

    async def _read_key(self, choice: "SetupChoice") -> str:
        if self.console.can_ask:
            key = await self.console.ask_line(f"Key for {choice.provider} (hidden):", hidden=True)
        else:
            from mimir.cli.arguments import read_value

            key = read_value()
        if not key:
            raise ConfigurationError(
                f"There is no key for {choice.provider} on standard input.",
                next_step="Write the key to standard input, or use --key variable.",
            )
        return key

    async def _choose_limit(self, choice: "SetupChoice", loaded: "LoadedSettings") -> "SetupChoice":
        from dataclasses import replace

        from mimir.cli.arguments import amount

        calls, cost = self.limit
        most = None if cost is None else amount(cost)
        if not (self.no_limit or calls or cost):
            calls, most = await self._ask(
                "Limit of a run: model calls (such as 500) or a cost (such as 2.50). Enter: none.",
                _read_limit,
                "a whole number of model calls above 0, a cost such as 2.50, or nothing",
            )
        if most is not None:
            self._require_price(choice, loaded)
        return replace(choice, max_calls=calls, max_cost=most)

    def _require_price(self, choice: "SetupChoice", loaded: "LoadedSettings") -> None:
        """Warn of a limit of cost without a price: runs would be refused."""
        name = f"{choice.provider}/{choice.model}"
        if name not in loaded.settings.llm.prices:
            self.console.note(f"warning: a limit of cost needs a price: mimir prices update {name}")

    async def _report(
        self, choice: "SetupChoice", path: str, *, is_changed: bool, project: bool
    ) -> None:
        loaded = self.session.load()
        test = await self._write_project(loaded) if project else {}
        limit = choice.max_calls or choice.max_cost
        if self.session.json:
            shape = {
                "schema": 1,
                "path": path,
                "changed": is_changed,
                "model": f"{choice.provider}/{choice.model}",
                "key": choice.key_place,
                "max_calls": choice.max_calls,
                "max_cost": None if choice.max_cost is None else str(choice.max_cost),
                **({"project": test} if project else {}),
            }
            self.console.json(shape)
        else:
            kept = {"file": path, "keyring": "the keyring", "variable": "its variable"}
            self._say(f"{'written' if is_changed else 'unchanged'}: {path}")
            self._say(f"model: {choice.provider}/{choice.model}")
            self._say(f"key: {kept.get(choice.key_place, 'none is needed')}")
            unit = "model calls" if choice.max_calls else "of cost"
            self._say(f"limit of a run: {f'{limit} {unit}' if limit else 'none'}")
            for name, value in test.items():
                self._say(f"{name.replace('_', ' ')}: {value}")
            self._say("next: mimir doctor --ask")
        origin = loaded.origins.get("llm.model", "")
        if loaded.settings.llm.model != f"{choice.provider}/{choice.model}":
            self.console.note(f"warning: {origin} sets llm.model too, and is stronger.")

    async def _write_project(self, loaded: "LoadedSettings") -> dict[str, object]:
        """Find and run the test command; write it to the project's file if it can be run."""
        from mimir.bootstrap import doctor
        from mimir.bootstrap.models.project_tests import find_tests, run_tests
        from mimir.bootstrap.settings_files import PROJECT_FILE, SettingChange, change_lines

        command = loaded.settings.checks.test_command or find_tests(self.session.project)
        if not command:
            return {"test_command": "none was found; nothing is written"}
        async with doctor.temporary_sandbox(loaded) as sandbox:
            ran = await run_tests(self.session.project, command, sandbox)
        ended = "timed out" if ran.timed_out else f"exit code {ran.exit_code}"
        path = self.session.project / PROJECT_FILE
        change = SettingChange(table="checks", key="test_command", value=command)
        is_changed = change_lines(path, [change], is_private=False)
        return {
            "project_file": f"{path}{'' if is_changed else ' (unchanged)'}",
            "test_command": f"{command} ({ended}, {ran.seconds:.1f} s)",
        }

    async def _ask(self, question: str, read: "Callable[[str], T | None]", allowed: str) -> T:
        """Ask until `read` takes the answer; a refused one is named with the allowed ones."""
        while True:
            answer = (await self.console.ask_line(question)).strip()
            found = read(answer)
            # An empty name is no answer either.
            if found is not None and found != "":
                return found
            refusal = f"{answer!r} is no answer" if answer else "An empty line is no answer"
            self.console.note(f"{refusal}. Type {allowed}.")

    def _show(self, lines: "Sequence[str]") -> None:
        for number, line in enumerate(lines, 1):
            self.console.note(f"{number}. {line}")

    def _say(self, text: str) -> None:
        from mimir.cli.layout import wrap

        self.console.say("\n".join(wrap(text, self.console.width, rest="  ")))
