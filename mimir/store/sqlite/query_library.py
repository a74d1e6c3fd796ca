"""SQL of `queries.sql` by name. Values are never part of the text; they are bound."""

import re
from functools import lru_cache

from mimir.store.query_file import load_queries
from mimir.store.schema import PROMOTED

_HOLE = re.compile(r"<([a-z]+)>")
COLUMNS = ", ".join(f'n."{name}"' for name in PROMOTED)


@lru_cache(maxsize=4096)
def sql(name: str, **pieces: str) -> str:
    """Return a query with its holes filled; pieces are SQL that the store made itself."""
    text = load_queries(__package__ or "", "queries.sql", "--")[name]
    return _HOLE.sub(lambda hole: pieces[hole[1]], text)
