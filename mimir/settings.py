"""Settings, from weak to strong: defaults, project file, user file, environment, flags.

With `bootstrap`, this module alone reads the environment. Forbidden lines of a project file are ignored with a warning.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, cast, get_args
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)

from mimir.domain.json_value import as_object, is_object
from mimir.domain.money import ModelPrice
from mimir.domain.run import ControlMode
from mimir.errors import ConfigurationError
from mimir.store.neo4j.address import secrets_of

# A cloned repository must not steal a key or open the sandbox.
_FROM_PROJECT_NEVER = (
    "llm.base_url",
    "llm.api_key",
    "llm.api_key_env",
    "llm.headers",
    "llm.extra_body",
    "llm.lane_header",
    "llm.proxy",
    "llm.prices",
    "sandbox",
    "network",
    "store",
    "neo4j",
    "tool_servers",
    "history",
)
_SHORT = {"MIMIR_MODEL": "llm.model", "MIMIR_STORE": "store"}
_NOT_SETTINGS = ("MIMIR_CONFIG", "MIMIR_TEST_", "MIMIR_REQUIRE_", "MIMIR_ANSWER")
_OPEN = (
    "llm.extra_body", "llm.headers", "llm.prices", "llm.context_tokens", "llm.max_output_tokens",
    "sandbox.env",
)  # fmt: skip
"""Tables that are values: their keys are not settings."""
_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASS", "_CREDENTIALS")

RoleName = Literal["ecko", "pm", "agentinator", "worker", "qc", "qc_reporter", "pm_reporter"]


class _SettingsSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _temperature(value: object) -> object:
    # TOML and the environment have no null.
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


Temperature = Annotated[float | None, BeforeValidator(_temperature)]


class RoleSettings(_SettingsSection):
    """The model of one role. Unset values come from `llm`."""

    model: str = ""
    temperature: Temperature = 0.0
    max_tokens: int | None = Field(default=None, gt=0)


_Money = Annotated[Decimal, Field(ge=0, le=10_000, decimal_places=6)]
_Positive = Annotated[int, Field(gt=0)]
_TokenLimit = _Positive | dict[str, _Positive] | None


class PriceSettings(_SettingsSection):
    """Price of a million tokens of a model, in the one currency of all prices."""

    input: _Money
    output: _Money


class LlmSettings(_SettingsSection):
    """The model, its endpoint and its limits."""

    base_url: str = ""
    """OpenAI-compatible endpoint; empty: OPENAI_BASE_URL, otherwise the provider's."""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the variable that holds the key."""
    model: str = ""
    """A model of the endpoint, or `provider:model` for another chat model."""
    extra_body: dict[str, object] = {}
    headers: dict[str, str] = {}
    lane_header: bool = False
    """True: each request has X-Mimir-Lane: run/task/attempt/role."""
    proxy: SecretStr = SecretStr("")
    """URL of an HTTP proxy; "none": direct. Empty: HTTPS_PROXY and the like decide."""
    structured: Literal["auto", "json_schema", "text"] = "auto"
    connect_seconds: float = Field(default=10.0, gt=0)
    stall_seconds: float = Field(default=120.0, gt=0)
    """Longest wait for the first byte and between two bytes."""
    answer_seconds: float = Field(default=600.0, gt=0)
    """Longest wait for a whole answer."""
    max_answer_bytes: int = Field(default=2_000_000, gt=0)
    context_tokens: _TokenLimit = None
    """Most tokens of prompt and answer; a table has one limit for each model."""
    max_output_tokens: _TokenLimit = None
    tries: int = Field(default=6, ge=1)
    retry_seconds: float = Field(default=300.0, ge=0)
    """Longest time of all tries of one call."""
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)
    concurrency: int = Field(default=32, gt=0)
    """Most calls at once."""
    prices: dict[str, PriceSettings] = {}
    """By model name; `run.max_cost` needs a price for each model of the run."""


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path")
    return path


class SandboxSettings(_SettingsSection):
    """The sandbox for commands."""

    backend: Literal["bubblewrap", "none"] = "bubblewrap"
    """`none` runs commands unprotected; the report states it."""
    share: list[str] = []
    """Further files, folders and globs for commands: of the project, or absolute."""
    read_only: list[Annotated[str, AfterValidator(_absolute)]] = []
    """Older form of `share` for absolute paths, which commands cannot write to."""
    env: dict[str, str] = {}
    """Variables of every command. They reach the outputs, so they must hold no secret."""
    memory_mb: int = Field(default=4096, gt=0)
    processes: int = Field(default=256, gt=0)
    file_mb: int = Field(default=512, gt=0)


class HistorySettings(_SettingsSection):
    """Exchange of commits between processes in several directories or on several hosts."""

    remote: str = ""
    """A URL that git can push to. Empty: all processes of a run use one directory."""


class Neo4jSettings(_SettingsSection):
    """Login of a Neo4j store whose URI has none."""

    user: str = "neo4j"
    password: SecretStr = SecretStr("")
    """Empty here and in the URI: no authentication."""
    database: str = ""
    """Empty: the user's default."""
    browser: str = ""
    """Address of Neo4j Browser, for the report's links; empty: http://HOST:7474/browser/."""
    patience_seconds: float = Field(default=300.0, ge=0)
    """Longest wait for a lost server before the run pauses."""


class RunSettings(_SettingsSection):
    """Limits and concurrency of a run."""

    workers: int = Field(default=4, ge=1, le=256)
    lease_seconds: float = Field(default=300.0, gt=0)
    max_calls: int | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, gt=0)
    max_cost: Decimal | None = Field(default=None, gt=0, le=100_000, decimal_places=6)
    """In the currency of `llm.prices`."""
    time_limit_minutes: float | None = Field(default=None, gt=0)
    apply: Literal["auto", "never", "commit"] = "auto"
    parallel_checks: int = Field(default=2, ge=1)
    attempt_tokens: int = Field(default=1_000_000, gt=0)
    """Limit of the tokens of one attempt's worker."""
    deliverable_files: _Positive = 5_000
    deliverable_mb: _Positive = 100


class CheckSettings(_SettingsSection):
    """How much proof a check must give."""

    controls: ControlMode = "accepted"
    """Whether a passed check must fail with changed expectations."""
    repeat: int = Field(default=1, ge=1, le=20)


class Settings(_SettingsSection):
    """All settings."""

    llm: LlmSettings = LlmSettings()
    roles: dict[RoleName, RoleSettings] = {}
    store: str = ""
    """Empty: the project's `.mimir/mimir.db`; a file path, `sqlite:///…` or `neo4j://…`."""
    neo4j: Neo4jSettings = Neo4jSettings()
    sandbox: SandboxSettings = SandboxSettings()
    history: HistorySettings = HistorySettings()
    run: RunSettings = RunSettings()
    checks: CheckSettings = CheckSettings()

    @field_validator("sandbox", mode="before")
    @classmethod
    def _expand_backend(cls, value: object) -> object:
        # `sandbox = "none"` is the short form of the table.
        return {"backend": value} if isinstance(value, str) else value

    def role(self, name: str) -> RoleSettings:
        """Return one role's settings."""
        return next((one for role, one in self.roles.items() if role == name), RoleSettings())

    @property
    def prices(self) -> Mapping[str, ModelPrice]:
        """The prices, by model name."""
        given = self.llm.prices.items()
        return {name: ModelPrice.per_million(one.input, one.output) for name, one in given}

    @property
    def api_key(self) -> str:
        """The key; empty if there is none."""
        return self.llm.api_key.get_secret_value()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with the warnings of their loading."""

    settings: Settings
    warnings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Keys and passwords that must never leave the process."""
    directory: Path | None = None
    """The user's own directory of settings. None: there is none."""
    color: bool = True
    """False: NO_COLOR is set, or the terminal is dumb."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Dotted path of each value that is no default → the layer that it comes from."""


def load(
    project: Path,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Load all layers.

    Args:
        project: Directory with `mimir.toml` or `[tool.mimir]` of `pyproject.toml`.
        flags: Values by dotted path, the strongest layer.
        environment: None: the environment of the process.

    Raises:
        ConfigurationError: A file cannot be read, a key is unknown, or a value is invalid.
    """
    env = os.environ if environment is None else environment
    warnings: list[str] = []
    path = user_file(env)
    layers: tuple[tuple[Mapping[str, object], str], ...] = (
        (_drop_forbidden(_read_project_file(project), warnings), "the project's settings"),
        (_read_toml(path) if path else {}, "your own settings file"),
        (_from_environment(env, warnings), "the environment"),
        (flags or {}, "a flag"),
    )
    tree: dict[str, object] = {}
    origins: dict[str, str] = {}
    for layer, source in layers:
        for name, value in iterate_leaves(layer):
            require_known(name, source)
            set_value(tree, name, value)
            origins["sandbox.backend" if name == "sandbox" else name] = source
    origins |= _add_openai_names(tree, env)
    settings = validate_tree(tree)
    return LoadedSettings(
        settings=settings,
        warnings=tuple(warnings),
        secrets=_secrets(settings, env),
        directory=path.parent if path else None,
        color="NO_COLOR" not in env and env.get("TERM") != "dumb",
        origins=origins,
    )


def user_file(env: Mapping[str, str]) -> Path | None:
    """Return the path of the user's own settings file, which may not exist."""
    if "MIMIR_CONFIG" in env:
        return Path(env["MIMIR_CONFIG"])
    base = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    # A service may run without a home directory.
    return Path(base) / "mimir" / "mimir.toml" if base else None


def validate_tree(tree: Mapping[str, object]) -> Settings:
    """Return the settings of nested tables; an invalid value is a `ConfigurationError`."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        # Only the first problem, because an error has at most three lines.
        first = error.errors()[0]
        name = ".".join(str(p) for p in first["loc"])
        raise ConfigurationError(
            f"Setting {name!r} is invalid: {first['msg']}.",
            next_step=f"Correct {name} in mimir.toml, your own settings file or the environment.",
        ) from None


def _read_toml(path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"{path.name} cannot be read: {error}.", next_step=f"Correct {path} or remove it."
        ) from None


def _read_project_file(project: Path) -> Mapping[str, object]:
    own = _read_toml(project / "mimir.toml")
    # A `mimir.toml` replaces the section of `pyproject.toml` completely.
    if own:
        return own
    return as_object(as_object(_read_toml(project / "pyproject.toml").get("tool")).get("mimir"))


def _drop_forbidden(layer: Mapping[str, object], warnings: list[str]) -> Mapping[str, object]:
    """Return the settings that a project file may choose; warn of the others."""
    allowed: dict[str, object] = {}
    for path, value in iterate_leaves(layer):
        if is_forbidden(path, value):
            warnings.append(
                f"The project's settings name {path!r}; ignored: a project may not choose it. "
                "Set it in your own settings file, the environment or a flag."
            )
        else:
            allowed[path] = value
    return allowed


def is_forbidden(path: str, value: object) -> bool:
    """Return whether a project's file may not choose a setting."""
    # A scripted model of the project would judge its own work.
    is_scripted = isinstance(value, str) and value.startswith("play:")
    return is_scripted or any(path == n or path.startswith(f"{n}.") for n in _FROM_PROJECT_NEVER)


def _from_environment(env: Mapping[str, str], warnings: list[str]) -> Mapping[str, object]:
    known = {f"MIMIR_{path.upper().replace('.', '_')}": path for path in KNOWN}
    found: dict[str, object] = {}
    for name in sorted(env):
        if not name.startswith("MIMIR_") or name.startswith(_NOT_SETTINGS):
            continue
        # `MIMIR_RUN__WORKERS` and `MIMIR_RUN_WORKERS` are the same setting.
        path = _SHORT.get(name) or known.get(name.replace("__", "_"))
        if path is None:
            near = difflib.get_close_matches(name, [*known, *_SHORT], n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            warnings.append(f"The environment variable {name} is not a setting of mimir.{hint}")
        else:
            found[path] = env[name]
    return found


def _add_openai_names(tree: dict[str, object], env: Mapping[str, str]) -> dict[str, str]:
    """Take key and endpoint from OpenAI's variables if no layer sets them; return the origins."""
    origins: dict[str, str] = {}
    llm = cast("dict[str, object]", tree.setdefault("llm", {}))
    # The name of the variable is a setting too, so it is read after all layers.
    name = str(llm.get("api_key_env", "OPENAI_API_KEY"))
    for path, variable in (("api_key", name), ("base_url", "OPENAI_BASE_URL")):
        if env.get(variable) and not llm.get(path):
            llm[path] = env[variable]
            origins[f"llm.{path}"] = f"the variable {variable}"
    return origins


def _secrets(settings: Settings, env: Mapping[str, str]) -> tuple[str, ...]:
    found = {settings.api_key, settings.neo4j.password.get_secret_value()}
    # A store URI may hold a password.
    found |= set(secrets_of(settings.store))
    proxies = [value for name, value in env.items() if name.upper().endswith("_PROXY")]
    for url in (settings.history.remote, settings.llm.proxy.get_secret_value(), *proxies):
        # The password of the URL, as it is and as it is encoded.
        login = url.rpartition("://")[2].partition("/")[0].rpartition("@")[0]
        password = login.partition(":")[2]
        found |= {password, unquote(password)}
    # Other secrets of the process must not reach a model either, even if mimir does not use them.
    found |= {v for k, v in env.items() if k.upper().endswith(_SECRET_NAMES) and len(v) >= 8}
    found |= {
        v for k, v in settings.llm.headers.items() if "auth" in k.lower() or "key" in k.lower()
    }
    # Shorter values would be redacted in every text.
    return tuple(sorted(s for s in found if len(s) >= 4))


def iterate_leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted paths with their values."""
    for key, value in tree.items():
        path = f"{prefix}{key}"
        # The keys of an open table are free, so it counts as one value.
        if is_object(value) and path not in _OPEN:
            yield from iterate_leaves(value, f"{path}.")
        else:
            yield path, value


def set_value(tree: dict[str, object], path: str, value: object) -> None:
    """Set a value of nested tables by its dotted path."""
    *parents, last = path.split(".")
    for part in parents:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            # A weaker layer may have written `sandbox = "none"`.
            inner = tree[part] = {"backend": inner} if isinstance(inner, str) else {}
        tree = cast("dict[str, object]", inner)
    tree[last] = {"backend": value} if last == "sandbox" and isinstance(value, str) else value


SECTIONS: Mapping[str, type[BaseModel]] = {
    "llm": LlmSettings,
    "sandbox": SandboxSettings,
    "history": HistorySettings,
    "neo4j": Neo4jSettings,
    "run": RunSettings,
    "checks": CheckSettings,
    **{f"roles.{role}": RoleSettings for role in get_args(RoleName)},
}
KNOWN = ("store", "sandbox", *(f"{s}.{k}" for s, m in SECTIONS.items() for k in m.model_fields))


def require_known(path: str, source: str) -> None:
    """Require that a setting exists; the `ConfigurationError` names the nearest one."""
    if path in KNOWN:
        return
    near = difflib.get_close_matches(path, KNOWN, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(
        f"Unknown setting {path!r} in {source}.{hint}",
        next_step="Correct the key, or remove it.",
    )
