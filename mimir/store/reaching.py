"""Which nodes can be reached from one: breadth first, each node once, whatever the store. Pure but for the step that is handed in."""

from collections.abc import Callable, Sequence


def reached(id: str, depth: int | None, step: Callable[[Sequence[str]], set[str]]) -> list[str]:
    """Return ids within `depth` edges, without `id` itself, sorted.

    Args:
        id: Where to begin.
        depth: Edges at most. None: no bound.
        step: Returns the ids one edge away from any of these.
    """
    seen, frontier, left = {id}, {id}, depth
    while frontier and (left is None or left > 0):
        frontier = step(sorted(frontier)) - seen
        seen |= frontier
        left = None if left is None else left - 1
    return sorted(seen - {id})
