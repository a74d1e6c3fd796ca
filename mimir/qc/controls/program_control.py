"""Control of compiled test programs: the order of their variants, and what these say.

A program proves something only if its end is reached and its assertions decide. Tests that fail by a program without the work, but not by its
failing end, are ended early. A program that the check does not start changes nothing.
"""

from collections.abc import Awaitable, Callable, Sequence

from mimir.domain.evidence import ControlState
from mimir.qc.controls.decision import SensitiveTests
from mimir.qc.mutations.mutation import Step
from mimir.qc.mutations.test_programs import TestProgram

Failed = Callable[[Step, Sequence[TestProgram]], Awaitable[frozenset[str]]]
"""Runs the variant of a step of programs; returns the counted tests that it turned red."""


async def decide_programs(
    programs: Sequence[TestProgram], tally: SensitiveTests, failed: Failed
) -> ControlState | None:
    """Return what the variants of test programs say; None: the check does not depend on them."""
    # The end comes first: it compiles always, while a changed value may not fit a type.
    own = [one for one in programs if one.has_end]
    called = [one for one in programs if not one.has_end]
    ended = await failed("end", own) if own else frozenset[str]()
    if own and tally.counted - ended and await failed("replaced", own) - ended:
        return "insensitive"
    sensitive = await failed("expectations", programs)
    if left := tally.counted - sensitive:
        # A comparison that computes its values, but holds with another one, decides nothing.
        if (called or ended) and await failed("strict", programs) & left:
            return "insensitive"
        sensitive |= await failed("statements", called) if called else frozenset[str]()
        # What a program without the work turns red is started, so its tests were not reached.
        left -= sensitive | ended
        if called and left and await failed("replaced", called) & left:
            return "insensitive"
    # The end is reached although no assertion decides.
    if ended and not sensitive and all(one.has_expectations for one in programs):
        return "insensitive"
    tally.sensitive = ended | sensitive
    return "red" if tally.sensitive else None
