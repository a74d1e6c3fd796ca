"""Links into Neo4j Browser that show a run or a task."""

from collections.abc import Callable
from typing import Literal
from urllib.parse import quote

from mimir.store.neo4j.address import Neo4jAddress
from mimir.store.neo4j.cypher_export import inline_parameters, literal
from mimir.store.neo4j.query_library import query

Shown = Literal["run", "task"]
# Returns the link to a node by its kind and id.
Link = Callable[[Shown, str], str]

_PLAIN_PORT, _SAFE_PORT = 7474, 7473


def links(address: Neo4jAddress, page: str = "") -> Link:
    """Return the function that makes the links of a store; an empty `page` means the default."""
    # The password is part of no link.
    scheme, _, place = address.uri.partition("?")[0].partition("://")
    safe = scheme.endswith(("+s", "+ssc"))
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = _SAFE_PORT if safe else _PLAIN_PORT
    own = f"{'https' if safe else 'http'}://{host}:{port}/browser/"
    login = "" if address.user else "&preselectAuthMethod=NO_AUTH"
    database = quote(address.database or "neo4j", safe="")
    server = quote(f"{scheme}://{place}", safe=":/[]")
    begin = f"{page or own}?dbms={server}{login}&db={database}&cmd=edit&arg="

    def link(shown: Shown, id: str) -> str:
        # Ids contain names of a plan: the literal cannot be closed by one, and the page can read no markup.
        asked = inline_parameters(
            query(f"show-{shown}"), store=literal(address.store), id=literal(id)
        )
        return f"{begin}{quote(asked, safe='')}"

    return link
