"""Transcript of an invoked agent as text: calls, with the beginning of each outcome."""

from mimir.domain.json_value import as_object, as_objects, as_text
from mimir.store.protocol import ReadOps
from mimir.store.records.call_records import CallRecord
from mimir.store.run_reading import find_records

CALL_CHARS = 4_000
"""Characters of one outcome."""
MAX_CALLS = 1_000
"""Calls that are read; an attempt has at most a few hundred."""


def read_transcript(reads: ReadOps, run: str) -> str:
    """Return the calls of the worker of an invocation, oldest first; nothing in it is trusted."""
    calls = find_records(
        reads,
        CallRecord,
        {"runId": run, "role": "worker"},
        order=("attempt", "lane", "seq"),
        limit=MAX_CALLS,
    )
    return "\n\n".join(map(_describe_call, calls))


def _describe_call(call: CallRecord) -> str:
    head = f"[attempt {call.attempt}, call {call.number}] {call.kind} {call.title}"
    if not call.is_done:
        return f"{head}\n(no outcome yet)"
    value = call.value.mapping()
    # Of a model the message, of a tool its result.
    message = as_object(value.get("message")) or value
    text = as_text(message.get("text"))
    asked = [
        f"calls {as_text(one.get('name'))} {as_text(one.get('arguments'))}"
        for one in as_objects(message.get("calls"))
    ]
    shown = "\n".join(filter(None, (text, *asked)))
    more = f"\n… {len(shown) - CALL_CHARS:,} more characters" if len(shown) > CALL_CHARS else ""
    return f"{head}\n{shown[:CALL_CHARS]}{more}".rstrip()
