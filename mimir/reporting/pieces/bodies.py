"""Bodies of sealed records as they are told: read, never judged; what is damaged is for the seal to find. Pure."""

import json
from collections.abc import Mapping
from typing import cast

from mimir.domain.evidence import Record

Body = Mapping[str, object]
"""Members of a sealed body."""


def members(record: Record) -> Body:
    """Return the members of a sealed body; none if it is no JSON object."""
    try:
        value = json.loads(record.body)
    except (ValueError, RecursionError):
        return {}
    return cast("Body", value) if isinstance(value, dict) else {}
