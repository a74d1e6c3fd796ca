"""Attempts that only read share a directory; an attempt that changes a file gets one of its own."""

import asyncio
from pathlib import Path

import pytest

from mimir.errors import WorkspaceError
from mimir.workspace.git.base_capture import BaseCommit
from mimir.workspace.git.history import GitHistory
from mimir.workspace.shared_checkouts import SharedCheckout, SharedCheckouts, index_of


@pytest.fixture
def lending(started: tuple[GitHistory, BaseCommit], tmp_path: Path) -> SharedCheckouts:
    return SharedCheckouts(started[0], tmp_path / "lent")


def rooms(where: Path) -> list[str]:
    return sorted(path.name for path in where.parent.glob("*") if path.is_dir())


async def both(lending: SharedCheckouts, base: BaseCommit) -> tuple[SharedCheckout, SharedCheckout]:
    first, second = await asyncio.gather(*(lending.borrow(base.tree, base.tree) for _ in range(2)))
    return first, second


async def test_borrowers_of_one_tree_share_a_directory(
    lending: SharedCheckouts, started: tuple[GitHistory, BaseCommit]
) -> None:
    first, second = await both(lending, started[1])
    assert first.where == second.where
    assert (first.where / "calc.py").is_file()


async def test_only_borrower_may_keep_the_checkout_as_workspace(
    lending: SharedCheckouts, started: tuple[GitHistory, BaseCommit], tmp_path: Path
) -> None:
    history, base = started
    loan = await lending.borrow(base.tree, base.tree)
    own = tmp_path / "own" / "1.1"
    assert await lending.keep(loan, own)
    assert rooms(loan.where) == []
    (own / "calc.py").write_text("changed")
    taken = await history.snapshot(own, index_of(own))
    assert [c.path for c in await history.diff_trees(base.tree, taken.tree)] == ["calc.py"]
    again = await lending.borrow(base.tree, base.tree)
    assert (again.where / "calc.py").read_text() != "changed"


async def test_borrowed_directory_is_not_moved(
    lending: SharedCheckouts, started: tuple[GitHistory, BaseCommit], tmp_path: Path
) -> None:
    first, second = await both(lending, started[1])
    assert not await lending.keep(first, tmp_path / "own")
    assert (second.where / "calc.py").is_file()
    await lending.give_back(first)
    assert await lending.keep(second, tmp_path / "own")


async def test_only_the_last_returned_checkout_is_kept(
    lending: SharedCheckouts, started: tuple[GitHistory, BaseCommit]
) -> None:
    base = started[1]
    loans = [await lending.borrow(source, base.tree) for source in (base.tree, base.commit)]
    assert len(rooms(loans[0].where)) == 2
    for loan in loans:
        await lending.give_back(loan)
    assert rooms(loans[0].where) == [loans[1].where.name]
    assert not list(loans[0].where.parent.glob(f"{loans[0].where.name}.index*"))


async def test_failed_borrow_can_be_repeated(
    lending: SharedCheckouts, started: tuple[GitHistory, BaseCommit]
) -> None:
    base = started[1]
    with pytest.raises(WorkspaceError):
        await lending.borrow("0" * 40, base.tree)
    loan = await lending.borrow(base.tree, base.tree)
    assert (loan.where / "calc.py").is_file()
