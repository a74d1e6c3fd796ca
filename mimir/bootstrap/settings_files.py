"""Settings files as a user sees them: values, origins, and changes of one line.

A change keeps comments and order. What cannot be changed safely is refused: the file is read again before it is written.
"""

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, SecretStr

from mimir.domain.json_value import as_object, is_object
from mimir.errors import ConfigurationError
from mimir.settings.layers import LoadedSettings, user_file, validate_tree
from mimir.settings.model import RoleSettings
from mimir.settings.names import (
    KNOWN,
    is_forbidden,
    iterate_leaves,
    require_known,
    section_of,
    set_value,
)
from mimir.workspace.atomic_write import write_atomically

PROJECT_FILE = "mimir.toml"
_SECTION = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")


def own_file() -> Path:
    """Return the user's own settings file, which may not exist.

    Raises:
        ConfigurationError: There is no home directory.
    """
    path = user_file(os.environ)
    if path is None:
        raise ConfigurationError(
            "There is no place for your own settings file: HOME is not set.",
            next_step="Name the file: MIMIR_CONFIG=FILE",
        )
    return path


def require_changeable(path: str, value: object, *, is_project: bool) -> None:
    """Require that a settings file, the user's own or the project's, may hold this value.

    Raises:
        ConfigurationError: The key is unknown, the value is invalid, or a project may not choose it.
    """
    require_known(path, "the command line")
    if is_project and is_forbidden(path, value):
        raise ConfigurationError(
            f"A project may not choose {path!r}: a cloned repository could take your key or open the sandbox.",
            next_step=f"Write it to your own settings file: mimir config set {path} VALUE",
        )
    tree: dict[str, object] = {}
    set_value(tree, path, value)
    validate_tree(tree)


def list_values(loaded: LoadedSettings) -> Mapping[str, object]:
    """Return every setting by its dotted path; secrets are masked."""
    found: dict[str, object] = {}
    for path in KNOWN:
        value: object = loaded.settings
        for part in path.split("."):
            is_role = isinstance(value, dict)
            value = as_object(value).get(part, RoleSettings()) if is_role else getattr(value, part)
        if isinstance(value, SecretStr):
            value = "********" if value.get_secret_value() else ""
        if path == "llm.endpoints":
            found |= _list_endpoints(loaded)
        elif not isinstance(value, BaseModel):
            found[path] = _mask(value, loaded.secrets)
    return found


def _list_endpoints(loaded: LoadedSettings) -> Mapping[str, object]:
    return {
        f"llm.endpoints.{name}.{key}": "********"
        if isinstance(value, SecretStr)
        else _mask(value, loaded.secrets)
        for name, one in loaded.settings.llm.endpoints.items()
        for key, value in one
        if key in one.model_fields_set
    }


def _mask(value: object, secrets: tuple[str, ...]) -> object:
    """Replace secrets in a text, or in the values of a table, such as a password in a URI."""
    if is_object(value):
        return {key: _mask(one, secrets) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    for secret in secrets:
        value = value.replace(secret, "********")
    return value


def is_secret(path: str) -> bool:
    """Return whether a setting is a key or a password."""
    model = section_of(path)
    field = model and model.model_fields.get(path.rpartition(".")[2])
    return field is not None and field.annotation is SecretStr


def read_value(text: str) -> object:
    """Return the value of a TOML text; a text that is no TOML value is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def change_file(path: Path, name: str, text: str, *, is_private: bool) -> None:
    """Set one value in a settings file; a private file is for its owner alone.

    Raises:
        ConfigurationError: The file cannot be read or written, or the value spans several lines.
    """
    value = read_value(text)
    before = _read(path)
    # A text such as `gpt-5` is no TOML, so it is quoted.
    written = json.dumps(value) if isinstance(value, str) else text.strip()
    after = _replace_line(before, name, written)
    wanted = {**dict(iterate_leaves(_parse(before, path))), name: value}
    if dict(iterate_leaves(_parse(after, path))) != wanted:
        raise ConfigurationError(
            f"{name} in {path} cannot be changed line by line.", next_step=f"Edit {path} yourself."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if is_private:
            _write_private(path, after.encode())
        else:
            write_atomically(path, after.encode())
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror}.",
            next_step="Name another file: MIMIR_CONFIG=FILE",
        ) from error


def _write_private(path: Path, data: bytes) -> None:
    # The file may hold a key: it is never readable for others, not even while it is written.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", next_step=f"Correct {path} or remove it."
        ) from None


def _parse(text: str, path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", next_step=f"Correct {path} or remove it."
        ) from None


def _replace_line(text: str, name: str, written: str) -> str:
    """Return the text with the line of a setting replaced, or added to its section."""
    section, _, key = name.rpartition(".")
    lines = text.splitlines()
    starts = [(n, found[1]) for n, line in enumerate(lines) if (found := _SECTION.fullmatch(line))]
    begins = next((n + 1 for n, named in starts if named == section), None if section else 0)
    line = f"{key} = {written}"
    if begins is None:
        return "\n".join([*lines, *([""] if lines else []), f"[{section}]", line, ""])
    ends = next((n for n, _ in starts if n >= begins), len(lines))
    own = re.compile(rf"\s*{re.escape(key)}\s*=")
    at = next((n for n in range(begins, ends) if own.match(lines[n])), None)
    if at is None:
        lines.insert(begins, line)
    else:
        lines[at] = line
    return "\n".join([*lines, ""])
