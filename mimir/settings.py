"""One tree of settings, from weak to strong: defaults, the project's file, the user's own file, environment, flags.

The only reader of the environment. A cloned repository must not steal a key or open the sandbox, so the project's file may not
name the endpoint, the key, the sandbox, the network, the store or tool servers: such lines are ignored with a warning.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, cast
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

from mimir.domain.money import ModelPrice
from mimir.errors import ConfigurationError
from mimir.store.neo4j.address import secrets_of

_FROM_PROJECT_NEVER = (
    "llm.base_url",
    "llm.api_key",
    "llm.api_key_env",
    "llm.headers",
    "llm.extra_body",
    "llm.lane_header",
    "llm.prices",
    "sandbox",
    "network",
    "store",
    "neo4j",
    "tool_servers",
    "history",
)
_SHORT = {"MIMIR_MODEL": "llm.model", "MIMIR_STORE": "store"}
_NOT_SETTINGS = (
    "MIMIR_CONFIG",
    "MIMIR_TEST_",
    "MIMIR_REQUIRE_",
    "MIMIR_ANSWER",
)


class _SettingsSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _temperature(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


Temperature = Annotated[float | None, BeforeValidator(_temperature)]


class RoleSettings(_SettingsSection):
    """How one role asks its model. Unset values come from `llm`."""

    model: str = ""
    temperature: Temperature = 0.0
    max_tokens: int | None = Field(default=None, gt=0)


_Money = Annotated[Decimal, Field(ge=0, le=10_000, decimal_places=6)]


class PriceSettings(_SettingsSection):
    """What a model's tokens cost, per million, in whatever currency all prices are in."""

    input: _Money
    output: _Money


class LlmSettings(_SettingsSection):
    """Which model answers, and how long to wait for it."""

    base_url: str = ""
    """OpenAI-compatible endpoint; empty: OPENAI_BASE_URL, else the provider's own."""
    api_key: SecretStr = SecretStr("")
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the variable that holds the key."""
    model: str = ""
    """A name for the endpoint, or `provider:model` for any other chat model."""
    extra_body: dict[str, object] = {}
    headers: dict[str, str] = {}
    lane_header: bool = False
    """True: each request carries X-Mimir-Lane: run/task/attempt/role."""
    structured: Literal["auto", "json_schema", "text"] = "auto"
    connect_seconds: float = Field(default=10.0, gt=0)
    stall_seconds: float = Field(default=120.0, gt=0)
    """Longest wait for the first byte and between two."""
    answer_seconds: float = Field(default=600.0, gt=0)
    """Longest wait for a whole answer."""
    max_answer_bytes: int = Field(default=2_000_000, gt=0)
    tries: int = Field(default=6, ge=1)
    retry_seconds: float = Field(default=300.0, ge=0)
    """Bound of all tries of one call together."""
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)
    concurrency: int = Field(default=32, gt=0)
    """Most calls at once."""
    prices: dict[str, PriceSettings] = {}
    """By the model's name as it is set; `run.max_cost` needs one for each model that a run asks."""


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is no absolute path")
    return path


class SandboxSettings(_SettingsSection):
    """Where commands run."""

    backend: Literal["bubblewrap", "none"] = "bubblewrap"
    """"none" runs commands unprotected; the report says so."""
    share: list[str] = []
    """Ignored folders of the project that commands may read, beside .venv, venv and node_modules."""
    read_only: list[Annotated[str, AfterValidator(_absolute)]] = []
    """Absolute paths outside the project that commands may read."""
    memory_mb: int = Field(default=4096, gt=0)
    processes: int = Field(default=256, gt=0)
    file_mb: int = Field(default=512, gt=0)


class HistorySettings(_SettingsSection):
    """Where commits are exchanged between processes of one run in several directories or on several hosts."""

    remote: str = ""
    """Any URL that git can push to. Empty: all processes of a run work in one directory, and share its hidden repository."""


class Neo4jSettings(_SettingsSection):
    """Who asks a Neo4j store, where its URI does not say."""

    user: str = "neo4j"
    password: SecretStr = SecretStr("")
    """Empty here and in the URI: no authentication."""
    database: str = ""
    """Empty: the user's own."""
    browser: str = ""
    """Address of Neo4j Browser, for the report's links; empty: http://HOST:7474/browser/."""
    patience_seconds: float = Field(default=300.0, ge=0)
    """How long a lost server is waited for before a run pauses."""


class RunSettings(_SettingsSection):
    """How a run goes about its tasks."""

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
    """Most tokens that one attempt's worker may use."""


class Settings(_SettingsSection):
    """Everything that a person can set."""

    llm: LlmSettings = LlmSettings()
    roles: dict[
        Literal["ecko", "pm", "agentinator", "worker", "qc", "qc_reporter", "pm_reporter"],
        RoleSettings,
    ] = {}
    store: str = ""
    """Empty: the project's `.mimir/mimir.db`; a file path, `sqlite:///…` or `neo4j://…`."""
    neo4j: Neo4jSettings = Neo4jSettings()
    sandbox: SandboxSettings = SandboxSettings()
    history: HistorySettings = HistorySettings()
    run: RunSettings = RunSettings()

    @field_validator("sandbox", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        return {"backend": value} if isinstance(value, str) else value

    def role(self, name: str) -> RoleSettings:
        """Return one role's settings."""
        return cast("Mapping[str, RoleSettings]", self.roles).get(name, RoleSettings())

    @property
    def prices(self) -> Mapping[str, ModelPrice]:
        """What the models cost, by name."""
        given = self.llm.prices.items()
        return {name: ModelPrice.per_million(one.input, one.output) for name, one in given}

    @property
    def api_key(self) -> str:
        """The key in force; empty where there is none."""
        return self.llm.api_key.get_secret_value()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with what the person should know of their reading."""

    settings: Settings
    warnings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Values that must never leave the process: keys, passwords."""
    color: bool = True
    """False: NO_COLOR is set or the terminal is dumb."""


@dataclass(slots=True)
class _SettingsLayers:
    tree: dict[str, object] = field(default_factory=dict[str, object])
    warnings: list[str] = field(default_factory=list[str])

    def add(self, layer: Mapping[str, object], source: str) -> None:
        for path, value in _leaves(layer):
            _check_known(path, source)
            _put(self.tree, path, value)


def load(
    project: Path,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Read all layers.

    Args:
        project: Directory whose `mimir.toml` or `[tool.mimir]` is read.
        flags: Dotted path → value, the strongest layer.
        environment: For tests; None: the process's own.

    Raises:
        ConfigurationError: A file cannot be read, a key is unknown (with the nearest), a value is of the wrong kind.
    """
    env = os.environ if environment is None else environment
    layers = _SettingsLayers()
    layers.add(_allowed(_project_file(project), layers.warnings), "the project's settings")
    layers.add(_user_file(env), "your own settings file")
    layers.add(_from_environment(env, layers.warnings), "the environment")
    layers.add(dict(flags or {}), "a flag")
    _openai_names(layers.tree, env)
    try:
        settings = Settings.model_validate(layers.tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        raise ConfigurationError(
            f"Setting {where!r} cannot be used: {first['msg']}.",
            next_step=f"Correct {where} in mimir.toml, your own settings file or the environment.",
        ) from None
    return LoadedSettings(
        settings=settings,
        warnings=tuple(layers.warnings),
        secrets=_secrets(settings, env),
        color="NO_COLOR" not in env and env.get("TERM") != "dumb",
    )


def git_login(environment: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return what git needs to reach a remote as the person would: their own configuration, and the agent of their keys."""
    env = os.environ if environment is None else environment
    home = env.get("HOME", "/nonexistent")
    return {
        "HOME": home,
        "PATH": env.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": f"{home}/.gitconfig",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        **{name: env[name] for name in _GIT_LOGIN if name in env},
    }


_GIT_LOGIN = (
    "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME",
    "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "GIT_SSL_CAINFO", "SSL_CERT_FILE",
)  # fmt: skip


def user_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the path of the user's own settings file, whether it is there or not."""
    env = os.environ if environment is None else environment
    if "MIMIR_CONFIG" in env:
        return Path(env["MIMIR_CONFIG"])
    base = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    return Path(base) / "mimir" / "mimir.toml" if base else None


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            f"{path.name} cannot be read: {error}.", next_step=f"Correct {path} or remove it."
        ) from None


def _project_file(project: Path) -> Mapping[str, object]:
    own = _read_toml(project / "mimir.toml")
    if own:
        return own
    tool = _read_toml(project / "pyproject.toml").get("tool")
    section = cast("Mapping[str, object]", tool).get("mimir") if isinstance(tool, dict) else None
    return cast("Mapping[str, object]", section) if isinstance(section, dict) else {}


def _user_file(env: Mapping[str, str]) -> Mapping[str, object]:
    path = user_file(env)
    return _read_toml(path) if path else {}


def _allowed(layer: Mapping[str, object], warnings: list[str]) -> dict[str, object]:
    kept: dict[str, object] = {}
    for path, value in _leaves(layer):
        scripted = isinstance(value, str) and value.startswith("play:")
        if scripted or any(path == n or path.startswith(f"{n}.") for n in _FROM_PROJECT_NEVER):
            warnings.append(
                f"The project's settings name {path!r}; ignored: a project may not choose it. "
                "Set it in your own settings file, the environment or a flag."
            )
        else:
            kept[path] = value
    return kept


def _from_environment(env: Mapping[str, str], warnings: list[str]) -> dict[str, object]:
    known = {f"MIMIR_{path.upper().replace('.', '_')}": path for path in _known_paths()}
    out: dict[str, object] = {}
    for name in sorted(env):
        if not name.startswith("MIMIR_") or name.startswith(_NOT_SETTINGS):
            continue
        path = _SHORT.get(name) or known.get(name.replace("__", "_"))
        if path is None:
            near = difflib.get_close_matches(name, [*known, *_SHORT], n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            warnings.append(f"The environment variable {name} is no setting of mimir.{hint}")
        else:
            out[path] = env[name]
    return out


def _openai_names(tree: dict[str, object], env: Mapping[str, str]) -> None:
    llm = cast("dict[str, object]", tree.setdefault("llm", {}))
    key = env.get(str(llm.get("api_key_env", "OPENAI_API_KEY")), "")
    if key and not llm.get("api_key"):
        llm["api_key"] = key
    if env.get("OPENAI_BASE_URL") and not llm.get("base_url"):
        llm["base_url"] = env["OPENAI_BASE_URL"]


def _secrets(settings: Settings, env: Mapping[str, str]) -> tuple[str, ...]:
    found = {settings.api_key, settings.neo4j.password.get_secret_value()}
    found |= set(secrets_of(settings.store)) | _password_of(settings.history.remote)
    found |= {v for k, v in env.items() if k.upper().endswith(_SECRET_NAMES) and len(v) >= 8}
    found |= {
        v for k, v in settings.llm.headers.items() if "auth" in k.lower() or "key" in k.lower()
    }
    return tuple(sorted(s for s in found if len(s) >= 4))


def _password_of(url: str) -> set[str]:
    """Return the password that stands in a URL, as it is and as it is written."""
    login = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
    written = login.partition(":")[2]
    return {written, unquote(written)} - {""}


_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASS", "_CREDENTIALS")


def _leaves(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield dotted paths with values; tables that are values themselves (`_OPEN`) are not entered."""
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and path not in _OPEN:
            yield from _leaves(cast("Mapping[str, object]", value), f"{path}.")
        else:
            yield path, value


_OPEN = ("llm.extra_body", "llm.headers", "llm.prices")


def _put(tree: dict[str, object], path: str, value: object) -> None:
    *parents, last = path.split(".")
    for part in parents:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            inner = tree[part] = {"backend": inner} if isinstance(inner, str) else {}
        tree = cast("dict[str, object]", inner)
    if last == "sandbox" and isinstance(value, str):
        value = {"backend": value}
    tree[last] = value


def _known_paths() -> list[str]:
    sections: dict[str, type[BaseModel]] = {
        "llm": LlmSettings,
        "sandbox": SandboxSettings,
        "history": HistorySettings,
        "neo4j": Neo4jSettings,
        "run": RunSettings,
        **{f"roles.{role}": RoleSettings for role in _ROLE_NAMES},
    }
    return ["store", "sandbox", *(f"{s}.{k}" for s, m in sections.items() for k in m.model_fields)]


_ROLE_NAMES = ("ecko", "pm", "agentinator", "worker", "qc", "qc_reporter", "pm_reporter")


def _check_known(path: str, source: str) -> None:
    known = _known_paths()
    if path in known:
        return
    near = difflib.get_close_matches(path, known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(
        f"Unknown setting {path!r} in {source}.{hint}",
        next_step="Correct or remove it; `mimir doctor` lists the settings in force.",
    )
