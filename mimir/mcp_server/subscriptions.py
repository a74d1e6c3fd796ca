"""Subscriptions of clients to resources: `subscriptions/listen`.

The store is the only truth, and other processes change it; so it is read every few seconds, while a client listens.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from mimir.bootstrap.stored_project import ProjectPlace
from mimir.errors import MimirError
from mimir.mcp_server.resources import Context, FindCall, find_run_of
from mimir.mcp_server.tools.run_reading import find_visible_run, read_visible_inbox
from mimir.mcp_server.tools.tool_values import IncomingCall
from mimir.store.protocol import ReadOps
from mimir.store.run_reading import load_run

INBOX = "mimir://inbox"
POLL_SECONDS = 3.0
"""A look takes some 10 ms of a core."""
MAX_STREAMS = 16
"""Of one server process."""
MAX_URIS = 50
"""Of one stream."""


class ServedSubscriptions:
    """Streams of notices that watched resources have changed; a notice has no content."""

    def __init__(self, find_call: FindCall) -> None:
        self._find_call = find_call
        self._streams = 0

    def register(self, server: Server[Any]) -> None:
        """Add the method to a server."""
        server.add_request_handler(
            "subscriptions/listen", SubscriptionsListenRequestParams, self._listen
        )

    async def _listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Send a notice for each change until the client leaves or its token ends."""
        wanted = list(params.notifications.resource_subscriptions or ())[:MAX_URIS]
        # Read first: a change after the acknowledgement must be noticed.
        states = await _read_states(self._find_call(context), wanted)
        if not states:
            raise MCPError(
                INVALID_PARAMS,
                "There is nothing to watch. Name mimir://inbox, or mimir://runs/RUN/report of a run.",
            )
        if self._streams >= MAX_STREAMS:
            raise MCPError(INVALID_PARAMS, f"{MAX_STREAMS} clients listen to this server already.")
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        honored = SubscriptionFilter(resource_subscriptions=list(states))
        self._streams += 1
        watching = asyncio.create_task(self._watch(context, states, bus, handler))
        try:
            return await handler(context, params.model_copy(update={"notifications": honored}))
        finally:
            self._streams -= 1
            watching.cancel()

    async def _watch(
        self,
        context: Context,
        states: Mapping[str, str],
        bus: InMemorySubscriptionBus,
        handler: ListenHandler,
    ) -> None:
        known = dict(states)
        while True:
            await asyncio.sleep(POLL_SECONDS)
            call = self._find_call(context)
            # A revoked token learns nothing more.
            if "read" not in call.principal.scopes:
                handler.close()
                return
            # A store that is away has not changed.
            with suppress(MimirError, OSError):
                for uri, state in (await _read_states(call, list(known))).items():
                    if known[uri] != state:
                        known[uri] = state
                        await bus.publish(ResourceUpdated(uri))


async def _read_states(call: IncomingCall, uris: Sequence[str]) -> dict[str, str]:
    """Return a digest for each resource that can be watched and that the principal may see."""
    if "read" not in call.principal.scopes:
        return {}

    def look(reads: ReadOps, place: ProjectPlace) -> dict[str, str]:
        found: dict[str, str] = {}
        for uri in uris:
            if uri == INBOX:
                shown = read_visible_inbox(reads, place, call.principal, every=False)
                text = json.dumps(shown, sort_keys=True, default=str)
                found[uri] = hashlib.sha256(text.encode()).hexdigest()
            elif named := find_run_of(uri):
                # Each change of a run has an event.
                with suppress(MimirError):
                    run = load_run(reads, find_visible_run(reads, place, call.principal, named))
                    status = run.shown_status(reads.now(), place.find_dead())
                    found[uri] = f"{status} {run.last_event}"
        return found

    return await call.project.read(look)
