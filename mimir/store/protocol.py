"""Protocol of every store: operations in one transaction, by two async methods.

The operations of `mimir.store.operations` are written once above it and know no adapter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

# Value of a property; None: absent. Objects are JSON text in a property whose name ends in `Json`. Half surrogates
# become U+FFFD. `schema.accept` is the whole rule.
Value = str | int | float | bool | list[str] | None
# Properties of a node with `id`; flat, camelCase.
Row = Mapping[str, Value]
Compare = tuple[Literal["in", "!=", "<", "<=", ">", ">="], object]
# `{"status": "pending"}` equal · `{"status": ("in", [...])}` · `{"seq": (">", 3)}` · None: the property is absent.
# `("!=", x)` also finds nodes without the property.
Where = Mapping[str, Value | Compare]
Direction = Literal["out", "in", "both"]


class ReadOps(Protocol):
    """Operations that change nothing."""

    def now(self) -> str:
        """Return the store's time as `clock.stamp` writes it; constant in one transaction."""
        ...

    def get(self, label: str, id: str, /) -> Row | None:
        """Return one node; None if there is none."""
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
        """Return the nodes that match all of `where`, in this order, ties by id.

        `order` names properties, with a leading `-` for descending; a node without the property comes first. Types are compared strictly: True is
        not 1, and `<` holds between numbers or between texts only. `only` names the properties that are read besides `id`; empty: all.
        """
        ...

    def first_of(
        self, label: str, any_of: Sequence[Where], /, *, order: Sequence[str], limit: int
    ) -> list[Row]:
        """Return the nodes that `find` returns for each condition, each once, in no order."""
        ...

    def counts(self, label: str, by: str, where: Where, /) -> dict[str, int]:
        """Count nodes by the value of one property, as text; an absent one is empty."""
        ...

    def neighbours(self, id: str, types: Sequence[str], direction: Direction, /) -> list[str]:
        """Return the ids one edge away, sorted; empty `types`: any."""
        ...

    def reach(
        self, id: str, types: Sequence[str], direction: Direction, depth: int | None, /
    ) -> list[str]:
        """Return the ids within `depth` edges (None: no bound), sorted, without `id` itself."""
        ...

    def edges_among(self, ids: Sequence[str], /) -> list[tuple[str, str, str]]:
        """Return (source, type, target) of every edge between these nodes, sorted."""
        ...

    def labels_of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Return the label of each of these nodes that exists."""
        ...

    def search(self, label: str, text: str, limit: int, /) -> list[tuple[str, float]]:
        """Search a label's text, best first. `text` is data, never query syntax."""
        ...

    def dump(self) -> Iterator[tuple[str, Row] | tuple[str, str, str]]:
        """Yield every node as (label, row), then every edge, in a fixed order."""
        ...


class WriteOps(ReadOps, Protocol):
    """All operations of one write transaction: all of them take effect, or none.

    Writers are serial: rows that a transaction has read do not change until the transaction ends.
    """

    def upsert(self, label: str, rows: Sequence[Row], /) -> None:
        """Add nodes, or set properties of existing ones; None removes a property.

        Raises:
            StoreError: `schema.accept` refuses a row, or another label has the id.
        """
        ...

    def link(self, type: str, pairs: Sequence[tuple[str, str]], /) -> None:
        """Add edges from source to target; an existing edge stays.

        Raises:
            StoreError: There is no such node.
        """
        ...

    def patch(self, label: str, id: str, props: Row, /) -> bool:
        """Set properties of one node, None removes one; False if there is no such node."""
        ...

    def patch_if(self, label: str, id: str, expect: Where, props: Row, /) -> Row | None:
        """Compare and set, and increment `version`; return the new row, or None.

        With empty `expect` and `props` it locks and reads the node.
        """
        ...

    def delete(self, label: str, ids: Sequence[str], /) -> int:
        """Delete nodes with their edges; return how many existed."""
        ...


class Transactions(Protocol):
    """The two ways into a store."""

    async def write(self, work: Callable[[WriteOps], T], /, *, durable: bool = True) -> T:
        """Run `work` in one transaction and commit it; an exception rolls it back.

        No death of a process undoes it. If `durable` is False, a power cut may undo it with everything committed after it, so nothing outside the
        store may depend on it unless it can be repeated. `work` may run more than once. A cancelled caller leaves the transaction to finish.
        """
        ...

    async def read(self, work: Callable[[ReadOps], T], /, *, brief: bool = False) -> T:
        """Run `work` on one consistent view.

        `work` may run more than once. If `brief`, it reads a few rows, and the store may run it at once on the caller's thread.
        """
        ...


class GraphStore(Transactions, Protocol):
    """Store of nodes and edges that survives a kill at any point."""

    @property
    def uri(self) -> str:
        """URI of the store, without secrets."""
        ...

    async def init(self) -> None:
        """Create or check the schema; idempotent.

        Raises:
            StoreError: The store is foreign or has a newer schema; it is left untouched.
        """
        ...

    async def close(self) -> None:
        """Close the store; committed changes stay."""
        ...
