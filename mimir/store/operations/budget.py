"""Budget of a run: calls, tokens and money, counted with the calls.

A crash loses nothing: the spent part of a run is its outcomes and its open intents. A run pins the prices when it begins; models without a
price are noted. Amounts of an agent count in each run above it and in its session too (`treeCalls`, `treeTokens`, `treeCost`), so
neither a tree nor a session exceeds its limits.
"""

from collections.abc import Collection, Mapping, Sequence

from mimir.domain import money
from mimir.domain.money import ModelPrice
from mimir.domain.usage import ChargedUsage, TokenUsage
from mimir.errors import ConfigurationError, Paused, StoreError
from mimir.store.protocol import Row, Value, WriteOps
from mimir.store.records.run_records import RunRecord
from mimir.store.row_fields import (
    int_field,
    json_field,
    maybe_whole,
    text_field,
    text_list_field,
)
from mimir.store.schema import NodeLabel

_MOST_SUM = 2**62


def prices_of(run: Row) -> Mapping[str, ModelPrice]:
    """Return the prices that a run has pinned, by model."""
    return {name: money.decode_price(one) for name, one in json_field(run, "pricesJson").items()}


def cost_of(run: Row, model: str, usage: TokenUsage) -> int | None:
    """Return the cost of tokens in units of money; None without a price and a reported cost."""
    price = prices_of(run).get(model) if run.get("pricesJson") else None
    if price is None:
        return usage.reported_cost if isinstance(usage, ChargedUsage) else None
    return price.cost(usage)


def must_be_priced(run: RunRecord, models: Collection[str]) -> None:
    """Refuse a cost limit for a run whose past cost is unknown.

    Raises:
        ConfigurationError: A model had no price when the run began.
    """
    known = run.prices.mapping()
    late = [*run.unpriced, *(name for name in models if name not in known)]
    if late:
        again = f"mimir execute {run.plan_path or 'PLAN'} --from {run.id}"
        raise ConfigurationError(
            f"The money of run {run.id} cannot be bounded: the model {late[0]!r} had no price when the run began.",
            next_step=f"Set llm.prices, then begin a run that reuses the completed tasks: {again} --max-cost AMOUNT",
        )


def must_have_prices(prices: Mapping[str, ModelPrice], models: Collection[str]) -> None:
    """Refuse to begin a run whose money is bounded and cannot be counted.

    Raises:
        ConfigurationError: A model that it will ask has no price.
    """
    for model in models:
        if model not in prices:
            message, step = _missing_price(model)
            raise ConfigurationError(message, next_step=step)


def reserve(
    ops: WriteOps,
    run: str,
    model: str,
    bound: TokenUsage,
    before: Row | None,
    *,
    is_model: bool = True,
) -> int | None:
    """Reserve a call, its tokens and its money; an open call adds only the difference.

    Only calls of models count against `maxCalls`.
    """
    row = ops.patch_if(NodeLabel.RUN, run, {}, {})
    if row is None:
        raise StoreError(f"There is no run {run!r}.")
    more_calls = 1 if is_model and not before else 0
    more_tokens = bound.total - (int_field(before, "reserved") if before else 0)
    _require_calls(row, more_calls)
    changed: dict[str, Value] = {
        "callsUsed": int_field(row, "callsUsed") + more_calls,
        "tokensReserved": _tokens(row, more_tokens),
    }
    cost, more_money = cost_of(row, model, bound), 0
    if cost is None:
        # A program may report its cost when it has ended.
        noted = _note_unpriced(row, model)
        changed.update(noted if is_model else {})
    else:
        more_money = cost - (int_field(before, "cost") if before else 0)
        changed["costReserved"] = _money(row, more_money)
    for label, above in _lock_above(ops, row):
        _require_calls(above, more_calls)
        _tokens(above, more_tokens)
        if cost is None:
            _note_unpriced(above, model)
        else:
            _money(above, more_money)
        _count_below(ops, label, above, more_calls, more_tokens, more_money)
    ops.patch(NodeLabel.RUN, run, changed)
    return cost


def spend(ops: WriteOps, run: str, made: Sequence[tuple[str, TokenUsage, TokenUsage]]) -> Row:
    """Turn reservations of calls (model, bound, used) into spent amounts.

    Returns:
        The run's row as it was read, which others then need not read again.
    """
    # The row is returned because the caller needs it too: one read less in each transaction.
    tokens, used = sum(b.total for _, b, _ in made), sum(u.total for _, _, u in made)
    if not tokens and not used:
        return ops.get(NodeLabel.RUN, run) or {}
    row = ops.patch_if(NodeLabel.RUN, run, {}, {}) or {}
    held = sum(cost_of(row, model, bound) or 0 for model, bound, _ in made)
    cost = sum(cost_of(row, model, spent) or 0 for model, _, spent in made)
    _settle(ops, row, released=(tokens, held), used=(used, cost))
    for label, above in _lock_above(ops, row):
        _count_below(ops, label, above, 0, used - tokens, cost - held)
    late = {model for model, _, spent in made if cost_of(row, model, spent) is None}
    known = {*text_list_field(row, "unpriced")}
    if late - known:
        ops.patch(NodeLabel.RUN, run, {"unpriced": sorted(late | known)})
    return row


def forfeit(ops: WriteOps, run: str, calls: Sequence[Row]) -> None:
    """Charge open calls that are deleted with their reservation."""
    # The model may have answered, so the reservation counts as spent.
    tokens = sum(int_field(call, "reserved") for call in calls)
    if tokens:
        row = ops.patch_if(NodeLabel.RUN, run, {}, {}) or {}
        held = tokens, sum(int_field(call, "cost") for call in calls)
        _settle(ops, row, released=held, used=held)


def _settle(ops: WriteOps, row: Row, *, released: tuple[int, int], used: tuple[int, int]) -> None:
    """Move (tokens, money) from the reserved to the used amount."""
    changed: dict[str, Value] = {
        "tokensReserved": int_field(row, "tokensReserved") - released[0],
        "tokensUsed": int_field(row, "tokensUsed") + used[0],
    }
    if released[1] or used[1]:
        changed["costReserved"] = int_field(row, "costReserved") - released[1]
        changed["costUsed"] = min(_MOST_SUM, int_field(row, "costUsed") + used[1])
    ops.patch(NodeLabel.RUN, str(row["id"]), changed)


def _lock_above(ops: WriteOps, row: Row) -> list[tuple[NodeLabel, Row]]:
    """Return the runs above a run, the nearest first, and its session, as far as they exist."""
    found: list[tuple[NodeLabel, Row]] = []
    # The number of steps is bounded, whatever a damaged store says.
    for _ in range(int_field(row, "depth")):
        parent = text_field(found[-1][1] if found else row, "parentRun")
        above = ops.patch_if(NodeLabel.RUN, parent, {}, {})
        if above is None:
            break
        found.append((NodeLabel.RUN, above))
    # The runs above have the same session, so each call counts in it once.
    named = text_field(row, "sessionId")
    session = ops.patch_if(NodeLabel.SESSION, named, {}, {}) if named else None
    return found if session is None else [*found, (NodeLabel.SESSION, session)]


def _count_below(
    ops: WriteOps, label: NodeLabel, above: Row, calls: int, tokens: int, cost: int
) -> None:
    """Add an amount that a run has reserved, or returned, to a run above it or to its session."""
    more = {"treeCalls": calls, "treeTokens": tokens, "treeCost": cost}
    changed = {name: int_field(above, name) + count for name, count in more.items() if count}
    if changed:
        ops.patch(label, text_field(above, "id"), changed)


def _require_calls(row: Row, more: int) -> None:
    calls, most = (
        int_field(row, "callsUsed") + int_field(row, "treeCalls"),
        maybe_whole(row, "maxCalls"),
    )
    if more > 0 and most is not None and calls + more > most:
        raise _budget_exhausted(row, f"{most} model calls", f"--max-calls {max(1, most * 2)}")


def _tokens(row: Row, more: int) -> int:
    """Return the reserved tokens with `more`."""
    used, reserved = (int_field(row, "tokensUsed"), int_field(row, "tokensReserved") + more)
    used += int_field(row, "treeTokens")
    most = maybe_whole(row, "maxTokens")
    if more > 0 and most is not None and used + reserved > most:
        limit = f"{most} tokens ({used} used, {reserved - more} reserved, {more} wanted)"
        raise _budget_exhausted(row, limit, f"--max-tokens {max(most * 2, used + reserved)}")
    return reserved


def _money(row: Row, more: int) -> int:
    """Return the reserved money with `more`."""
    # Prices are pinned in the run, so a new price list changes no budget under way.
    used, reserved = (int_field(row, "costUsed"), int_field(row, "costReserved") + more)
    used += int_field(row, "treeCost")
    most = maybe_whole(row, "maxCost")
    if more > 0 and most is not None and used + reserved > most:
        spent, held, wanted = map(money.format_money, (used, reserved - more, more))
        limit = (
            f"a cost of {money.format_money(most)} ({spent} used, {held} reserved, {wanted} wanted)"
        )
        raise _budget_exhausted(
            row, limit, f"--max-cost {money.format_money(_enough(most, used + reserved))}"
        )
    return reserved


def _enough(most: int, wanted: int) -> int:
    """Return a limit of money to suggest: twice as much, and enough for the refused call."""
    # Rounded up to a micro-unit, the smallest amount that a user can write.
    micro = money.UNITS // 10**6
    return min(money.MOST, -(-max(most * 2, wanted) // micro) * micro)


def _note_unpriced(row: Row, model: str) -> Row:
    """Note a model without a price; refuse it under a cost limit."""
    if row.get("maxCost") is not None:
        message, step = _missing_price(model)
        raise Paused(message, reason="configuration", exit_code=78, next_step=step)
    late = text_list_field(row, "unpriced")
    return {} if model in late else {"unpriced": sorted({*late, model})}


def _missing_price(model: str) -> tuple[str, str]:
    """Return the message and the next step for a missing price."""
    return (
        f"Money is bounded (--max-cost, run.max_cost), but the model {model!r} has no price.",
        f'Run `mimir prices update {model}`, or set it in your own settings file, per million tokens: [llm.prices."{model}"] input = 0.15 output = 0.60',
    )


def _budget_exhausted(row: Row, limit: str, flag: str) -> Paused:
    id = text_field(row, "id")
    # Of the nodes with a budget, a session alone is in contact with a client.
    if row.get("lastSeenAt"):
        return Paused(
            f"The budget of the session {id} is used up: {limit}.",
            reason="budget",
            next_step="Work in another session, or raise its limit and resume: agents.session_max_calls, session_max_tokens, session_max_cost",
        )
    return Paused(
        f"The run's budget is used up: {limit}.",
        reason="budget",
        next_step=f"Raise the limit: `mimir resume {id} {flag}`",
    )
