"""`mimir mcp token`, `tokens` and `revoke`: the tokens of clients over HTTP."""

from typing import TYPE_CHECKING, Annotated

import typer

from mimir.cli.commands.mcp.serve import own_directory, require_library
from mimir.cli.session import CommandSession
from mimir.errors import UsageError

if TYPE_CHECKING:
    from mimir.mcp_server.transports.token_file import TokenFile

MAX_NAME = 60

Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]
Scopes = Annotated[
    str, typer.Option("--scope", metavar="SCOPES", help="read, work, answer, admin; with commas.")
]
Days = Annotated[
    int, typer.Option("--days", metavar="N", min=1, max=3650, help="Days of validity; default: 90.")
]
Agent = Annotated[
    str, typer.Option("--agent", metavar="AGENT", help="Agent that the token is bound to.")
]


def token(
    session: CommandSession, name: Name, scope: Scopes = "read", days: Days = 90, agent: Agent = ""
) -> int:
    """Create a token and print it once.

    NAME is the name of the client in lists and reports. The token itself is not stored.
    """
    if not name or len(name) > MAX_NAME or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(
            f"{name[:80]!r} is not a name of a token.", next_step="Use letters, digits, - and _."
        )
    from mimir.bootstrap.clock import SystemClock
    from mimir.mcp_server.transports.token_file import read_scopes

    scopes = read_scopes(scope)
    created = _open(session).create(name, scopes, days=days, agent=agent, now=SystemClock().now())
    if session.json:
        shape = {"schema": 1, "name": name, "token": created, "scopes": list(scopes), "days": days}
        session.console.json(shape)
        return 0
    # The token alone on standard output, so that a script can take it.
    session.console.say(created)
    session.console.note(f"token {name}: {', '.join(scopes)}; {days} days; it is not shown again")
    return 0


def tokens(session: CommandSession) -> int:
    """List the tokens, without their secrets."""
    from mimir.bootstrap.clock import SystemClock

    now = SystemClock().now()
    found = _open(session).load()
    if session.json:
        shown = [
            {name: value for name, value in one.as_json().items() if name != "sha256"}
            for one in found
        ]
        session.console.json({"schema": 1, "tokens": shown})
        return 0
    for one in found:
        state = "revoked" if one.revoked_at else "valid" if one.is_valid(now) else "expired"
        until = "" if one.revoked_at else f" until {one.expires_at[:10]}"
        session.console.say(f"{one.name}  {', '.join(one.scopes)}  {state}{until}")
    if not found:
        session.console.say("no tokens")
        session.console.note("next: mimir mcp token laptop --scope read,work")
    return 0


def revoke(session: CommandSession, name: Name) -> int:
    """Revoke a token at once, also for servers that are running.

    NAME is the name of the token.
    """
    from mimir.bootstrap.clock import SystemClock

    _open(session).revoke(name, SystemClock().now())
    return session.show({"name": name, "revoked": True}, f"revoked: {name}")


def _open(session: CommandSession) -> "TokenFile":
    require_library()
    from mimir.mcp_server.transports.token_file import TokenFile

    return TokenFile(own_directory(session.load()))
