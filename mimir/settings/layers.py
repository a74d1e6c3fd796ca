"""Loading of settings from their layers.

From weak to strong: defaults, project file, user file, environment, flags. Forbidden lines of a project file are ignored with a warning.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from pydantic import ValidationError

from mimir.domain.json_value import as_object
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError
from mimir.settings.model import Settings
from mimir.settings.names import (
    KNOWN,
    is_forbidden,
    iterate_leaves,
    require_known,
    set_value,
)
from mimir.settings.providers import PRESETS
from mimir.store.neo4j.address import secrets_of

_SHORT = {
    "MIMIR_MODEL": "llm.model",
    "MIMIR_STORE": "store",
    # Names of an earlier server for agents.
    "SECONDBRAIN_MAX_AGENTS": "agents.session_concurrent",
    "SECONDBRAIN_CHATMODE_PATH": "agents.path",
    "SECONDBRAIN_LOG_LEVEL": "mcp.log_level",
}
_WITHOUT_EFFECT = "SECONDBRAIN_SESSION_DIR"
_NOT_SETTINGS = (
    "MIMIR_CONFIG",
    "MIMIR_TEST_",
    "MIMIR_REQUIRE_",
    "MIMIR_ANSWER",
    "MIMIR_PRINCIPAL",
    "MIMIR_SESSION",
)
_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASS", "_CREDENTIALS")


@value_class
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
    _require_endpoints(settings)
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


def _require_endpoints(settings: Settings) -> None:
    """Require that the endpoint of each role exists, and that the role's model belongs to it."""
    known = sorted({*settings.llm.endpoints, *PRESETS})
    for name, role in settings.roles.items():
        if role.endpoint and role.endpoint not in known:
            near = difflib.get_close_matches(role.endpoint, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigurationError(
                f"roles.{name}.endpoint is {role.endpoint!r}, which is no endpoint.{hint}",
                next_step=f"Write [llm.endpoints.{role.endpoint}] into your own settings file, or use: {', '.join(known)}.",
            )
        common = settings.llm.model
        if role.endpoint and not role.model and (settings.split_endpoint(common)[0] or not common):
            raise ConfigurationError(
                f"roles.{name} has the endpoint {role.endpoint!r}, but no model of it.",
                next_step=f'Set the model too: [roles.{name}] endpoint = "{role.endpoint}" model = "MODEL"',
            )


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


def _from_environment(env: Mapping[str, str], warnings: list[str]) -> Mapping[str, object]:
    known = {f"MIMIR_{path.upper().replace('.', '_')}": path for path in KNOWN}
    found: dict[str, object] = {}
    # Of two names of a setting, that of mimir is the stronger one.
    for name in sorted(env, key=lambda name: (name.startswith("MIMIR_"), name)):
        if name == _WITHOUT_EFFECT:
            warnings.append(f"{name} has no effect: the store keeps the sessions.")
        is_ours = name.startswith("MIMIR_") or name in _SHORT
        if not is_ours or name.startswith(_NOT_SETTINGS):
            continue
        # `MIMIR_RUN__WORKERS` and `MIMIR_RUN_WORKERS` are the same setting.
        path = _SHORT.get(name) or known.get(name.replace("__", "_"))
        if path not in KNOWN:
            near = difflib.get_close_matches(name, [*known, *_SHORT], n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            warnings.append(f"The environment variable {name} is not a setting of mimir.{hint}")
        else:
            # Directories, as in PATH.
            found[path] = env[name].split(os.pathsep) if path == "agents.path" else env[name]
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
    endpoints = settings.llm.endpoints.values()
    found |= {one.api_key.get_secret_value() for one in endpoints}
    found |= {env.get(one.api_key_env, "") for one in endpoints}
    # The variables of a program are for it alone.
    programs = settings.agents.programs.values()
    found |= {env.get(name, "") for one in programs for name in one.environment}
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
    tables = (settings.llm.headers, *(one.headers for one in endpoints))
    headers = (pair for table in tables for pair in table.items())
    found |= {v for k, v in headers if "auth" in k.lower() or "key" in k.lower()}
    # Shorter values would be redacted in every text.
    return tuple(sorted(s for s in found if len(s) >= 4))
