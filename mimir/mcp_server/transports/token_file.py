"""Tokens of the HTTP transport: a file that holds their hashes, never a token."""

import fcntl
import hmac
import json
import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from mimir.domain.clock import moment, stamp
from mimir.domain.json_value import as_object, as_objects, as_text, as_texts
from mimir.domain.text_hash import hash_text
from mimir.domain.value_class import value_class
from mimir.errors import ConfigurationError, UsageError
from mimir.mcp_server.tools.tool_values import SCOPES, Scope

SCHEMA = 1
FILE = "tokens.json"
PREFIX = "mimir_"


@value_class
class StoredToken:
    """One token without its secret."""

    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    agent: str
    """Address of the agent that it is bound to. Empty: none."""
    created_at: str
    expires_at: str
    revoked_at: str = ""
    """Empty: not revoked."""

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token permits calls now."""
        return not self.revoked_at and now < moment(self.expires_at)

    def as_json(self) -> dict[str, object]:
        """Return the stored members."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "scopes": list(self.scopes),
            "agent": self.agent or None,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "revoked_at": self.revoked_at or None,
        }


class TokenFile:
    """The file of tokens in the user's own directory of settings."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE

    def load(self) -> list[StoredToken]:
        """Return all tokens, oldest first.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError):
            raise self._broken("It cannot be read.") from None
        try:
            shape = as_object(json.loads(text))
            if shape.get("schema") != SCHEMA:
                raise self._broken("Its schema is another one.")
            return [_read(one) for one in as_objects(shape.get("tokens"))]
        except ValueError:
            raise self._broken("mimir did not write this content.") from None

    def create(
        self, name: str, scopes: Sequence[Scope], *, days: int, agent: str, now: datetime
    ) -> str:
        """Store a new token and return it; it cannot be read again.

        Raises:
            UsageError: A valid token has this name.
        """
        with self._locked():
            known = self.load()
            if any(one.name == name and one.is_valid(now) for one in known):
                raise UsageError(
                    f"There is a token {name!r}.",
                    next_step=f"Choose another name, or: mimir mcp revoke {name}",
                )
            token = PREFIX + secrets.token_urlsafe(32)
            created = StoredToken(
                name=name,
                sha256=hash_text(token),
                scopes=tuple(scopes),
                agent=agent,
                created_at=stamp(now),
                expires_at=stamp(now + timedelta(days=days)),
            )
            # One name is one principal, so the old token of it must not come back.
            self._save([*(one for one in known if one.name != name), created])
        return token

    def revoke(self, name: str, now: datetime) -> None:
        """Revoke a token.

        Raises:
            UsageError: There is no valid token with this name.
        """
        with self._locked():
            known = self.load()
            if not any(one.name == name and not one.revoked_at for one in known):
                raise UsageError(
                    f"There is no token {name[:80]!r}.", next_step="See them: mimir mcp tokens"
                )
            self._save(
                [
                    replace(one, revoked_at=stamp(now))
                    if one.name == name and not one.revoked_at
                    else one
                    for one in known
                ]
            )

    def find(self, token: str, now: datetime) -> StoredToken | None:
        """Return the valid token with this secret; None: there is none."""
        digest = hash_text(token)
        found = None
        # All are compared, so that the time does not depend on the place of the right one.
        for one in self.load():
            if hmac.compare_digest(one.sha256, digest):
                found = one
        return found if found and found.is_valid(now) else None

    def _save(self, tokens: Sequence[StoredToken]) -> None:
        shape = {"schema": SCHEMA, "tokens": [one.as_json() for one in tokens]}
        temporary = self._path.with_name(f"{FILE}.{os.getpid()}.tmp")
        # Created for the user alone: a mode that is set later would be too late.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor
            file.write(json.dumps(shape, indent=2) + "\n")
        # In one step: a running server reads the file at each request.
        temporary.replace(self._path)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the lock of the file; the system releases it with the process."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _broken(self, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"The file of tokens is not usable: {self._path}. {why}",
            next_step="Move it away, then create the tokens again: mimir mcp token",
        )


def read_scopes(text: str) -> tuple[Scope, ...]:
    """Return the scopes of a list with commas.

    Raises:
        UsageError: One of them is unknown.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SCOPES]
    if unknown or not names:
        raise UsageError(
            f"{(unknown or [text])[0][:40]!r} is not a scope.",
            next_step=f"Scopes: {', '.join(SCOPES)}",
        )
    # In one order, so that equal scopes are stored alike.
    return tuple(one for one in SCOPES if one in names)


def _read(shape: dict[str, object] | object) -> StoredToken:
    one = as_object(shape)
    names = as_texts(one.get("scopes"))
    found = StoredToken(
        name=as_text(one.get("name")),
        sha256=as_text(one.get("sha256")),
        scopes=tuple(scope for scope in SCOPES if scope in names),
        agent=as_text(one.get("agent")),
        created_at=as_text(one.get("created_at")),
        expires_at=as_text(one.get("expires_at")),
        revoked_at=as_text(one.get("revoked_at")),
    )
    # A date that cannot be read must not become a token without end.
    moment(found.expires_at)
    return found
