"""The number of tool calls that an attempt may make. Pure."""

# Tool calls of an attempt without an estimate; also of QC and the PM.
DEFAULT_CALL_LIMIT = 50


def call_limit(estimate: int | None) -> int:
    """Return the tool calls that an estimate allows: one and a half times, at least one."""
    return DEFAULT_CALL_LIMIT if estimate is None else max(1, (3 * estimate + 1) // 2)
