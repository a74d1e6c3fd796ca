"""The door to every store: synchronous verbs inside one transaction, two asynchronous doors around them.

Domain verbs (claim, move, journal, memory …) are written once above these and never know which store they are in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

Value = str | int | float | bool | list[str] | None
"""What a property may hold. None means "not there"; maps are JSON text in a property whose name ends in `Json`.

Text is what UTF-8 can carry, NUL included: a half surrogate becomes U+FFFD on its way in. `schema.accept` is the whole rule.
"""
Row = Mapping[str, Value]
"""A node's properties, `id` among them; flat, camelCase."""
Compare = tuple[Literal["in", "!=", "<", "<=", ">", ">="], object]
Where = Mapping[str, Value | Compare]
"""`{"status": "pending"}` equal · `{"status": ("in", [...])}` · `{"seq": (">", 3)}` · None: the property is not there.
`("!=", x)` also finds nodes without the property."""
Direction = Literal["out", "in", "both"]


class ReadOps(Protocol):
    """Verbs that change nothing."""

    def now(self) -> str:
        """Return the store's time as `clock.stamp` writes it; the same within one transaction. Leases are compared with it only."""
        ...

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node, or None."""
        ...

    def find(
        self,
        label: str,
        where: Where,
        /,
        *,
        order: Sequence[str] = (),
        limit: int | None = None,
        only: Sequence[str] = (),
    ) -> list[Row]:
        """Return nodes that match all of `where`; `order` names properties, a leading `-` for descending. Ties by id.

        Nodes without the property come first, and last when descending. Types are compared strictly: True is not 1, a list is
        not its JSON text; `<` and its kin hold between numbers or between texts only.

        `only` names the properties that are read, beside `id`; empty: all. Of thousands of nodes a few are read sooner.
        """
        ...

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return of each condition the nodes that `find` would return, each once, in no order; one question where the store can."""
        ...

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by the value of one property (as text); "" where it is not there."""
        ...

    def neighbours(self, id: str, types: Sequence[str], direction: Direction, /) -> list[str]:
        """Return ids one edge away, sorted; empty `types`: any."""
        ...

    def reach(
        self, id: str, types: Sequence[str], direction: Direction, depth: int | None, /
    ) -> list[str]:
        """Return ids within `depth` edges (None: no bound), without `id` itself, sorted. Breadth first, each node once."""
        ...

    def edges_among(self, ids: Sequence[str], /) -> list[tuple[str, str, str]]:
        """Return (source, type, target) of every edge between these nodes, sorted."""
        ...

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that is there."""
        ...

    def search(self, label: str, text: str, limit: int, /) -> list[tuple[str, float]]:
        """Full-text search over a label's `text`; best first. `text` is data, never query syntax."""
        ...

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node as (label, row), then every edge as (source, type, target), in a fixed order.

        To be used up inside the transaction, as every verb: afterwards they refuse.
        """
        ...


class WriteOps(ReadOps, Protocol):
    """All verbs, inside one write transaction: everything or nothing.

    Writers go one after another: what a writing transaction has read stays so until it is over.
    """

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Make nodes, or set properties of existing ones (None removes).

        Raises:
            StoreError: A row that `schema.accept` refuses, or an id that a node of another label has.
        """
        ...

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Make edges source → target; both nodes must be there; one that exists stays.

        Raises:
            StoreError: A node is not there.
        """
        ...

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node (None removes); False if it is not there."""
        ...

    def patch_if(self, label: str, id: str, expect: Where, props: Row, /) -> Row | None:
        """Compare and set under the node's write lock; bumps `version`; the new row, or None if `expect` did not hold.

        With an empty `expect` and empty `props` it takes the node's lock and reads it: what follows is decided on that row.
        """
        ...

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges; the number that was there."""
        ...


class Transactions(Protocol):
    """The two ways into a store."""

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction and commit it: no death of a process takes it back.

        A power cut does not either, unless `durable` is False: then it may, and all that was committed after it, as if the machine had stopped
        a moment sooner. So nothing outside of the store may be done on the strength of it but what may be done twice.

        `work` may be run more than once (deadlock, lost connection), so it must have no effect but through its argument.
        An exception of `work` rolls it back and is raised here. A cancelled caller leaves the transaction to finish.
        """
        ...

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one consistent view: of each transaction it sees all or nothing.

        `work` may be run more than once (a writer came between, lost connection), so it must have no effect but through what it
        returns. With `brief` it reads a few rows: a store of this process may run it at once, and everybody here waits meanwhile.
        """
        ...


class GraphStore(Transactions, Protocol):
    """A store of nodes and edges that survives a kill at any point."""

    @property
    def uri(self) -> str:
        """Where it is, without secrets."""
        ...

    async def init(self) -> None:
        """Make or check the schema; idempotent.

        Raises:
            StoreError: The store is not mimir's, or of a newer schema; it is left untouched.
        """
        ...

    async def close(self) -> None:
        """Let go; what was committed stays."""
        ...
