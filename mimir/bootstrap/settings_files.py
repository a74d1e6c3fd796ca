"""Settings files as a user sees them: values, origins, and changes of one line.

A change keeps comments and order. An unsafe change is refused: the file is read again before it is written.
"""

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, SecretStr

from mimir.domain.json_value import as_object, is_object
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError
from mimir.settings.layers import LoadedSettings, user_file, validate_tree
from mimir.settings.model import RoleSettings
from mimir.settings.names import (
    KNOWN,
    is_forbidden,
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


@value_class
class SettingChange:
    """One line of a settings file."""

    table: str
    """Table as it is written, such as `llm.prices."gpt-5"`. Empty: none."""
    key: str
    value: object
    """None: the line is removed."""


def change_file(path: Path, name: str, text: str, *, is_private: bool) -> None:
    """Set one value in a settings file; a private file is for its owner alone.

    Raises:
        ConfigurationError: The file cannot be read or written, or the value spans several lines.
    """
    table, _, key = name.rpartition(".")
    change_lines(
        path, [SettingChange(table=table, key=key, value=read_value(text))], is_private=is_private
    )


def change_lines(path: Path, changes: Sequence[SettingChange], *, is_private: bool) -> bool:
    """Change lines of a settings file, all or none; return whether it changed.

    Raises:
        ConfigurationError: As `change_file`.
    """
    before = _read(path)
    after, wanted = before, _parse(before, path)
    for one in changes:
        after = _replace_line(after, one)
        wanted = _with_value(wanted, [*_parts(one.table), one.key], one.value)
    if after == before:
        return False
    if _parse(after, path) != wanted:
        name = f"{changes[0].table}.{changes[0].key}".lstrip(".")
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
    return True


def _parts(table: str) -> Sequence[str]:
    """Return the names of a table's header, without their quotes."""
    return [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|([^."]+)', table)]


def _with_value(
    tree: Mapping[str, object], names: Sequence[str], value: object
) -> Mapping[str, object]:
    first, *rest = names
    if value is None and first not in tree:
        return tree
    if rest:
        return {**tree, first: _with_value(as_object(tree.get(first)), rest, value)}
    others = {name: one for name, one in tree.items() if name != first}
    return others if value is None else {**others, first: value}


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


def _replace_line(text: str, change: SettingChange) -> str:
    """Return the text with the line of a setting replaced, removed, or added to its table."""
    lines = text.splitlines()
    starts = [(n, found[1]) for n, line in enumerate(lines) if (found := _SECTION.fullmatch(line))]
    table = change.table
    begins = next((n + 1 for n, named in starts if named == table), None if table else 0)
    line = f"{change.key} = {_write_value(change.value)}"
    if begins is None:
        added = [*lines, *([""] if lines else []), f"[{table}]", line, ""]
        return text if change.value is None else "\n".join(added)
    ends = next((n for n, _ in starts if n >= begins), len(lines))
    own = re.compile(rf"\s*{re.escape(change.key)}\s*=")
    at = next((n for n in range(begins, ends) if own.match(lines[n])), None)
    if at is None:
        lines[begins:begins] = [] if change.value is None else [line]
    elif change.value is None:
        del lines[at]
    elif tomllib.loads(_safe(lines[at])) != {change.key: change.value}:
        lines[at] = line
    return "\n".join([*lines, ""])


def _safe(line: str) -> str:
    """Return a line that is complete TOML; a value of several lines is not."""
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ""
    return line


def _write_value(value: object) -> str:
    # JSON's texts, numbers, truth values and arrays are TOML too.
    if is_object(value):
        return (
            f"{{ {', '.join(f'{json.dumps(k)} = {_write_value(v)}' for k, v in value.items())} }}"
        )
    return json.dumps(value, ensure_ascii=False, default=str)
