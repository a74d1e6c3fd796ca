"""Actions of a user, or failures, on a project during a run: at a named turn of a named agent, so without a clock."""

# The scripted model names its lane in a private attribute.
# pyright: reportPrivateUsage=false

from collections import Counter
from collections.abc import Callable

import pytest

from mimir.llm.scripted.scripted_model import ScriptedModel

Deed = Callable[[], None]


class Meanwhile:
    """Does something once, right before the next turn of an agent."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._asked: Counter[str] = Counter()
        self._deeds: dict[tuple[str, int], Deed] = {}
        self.done = 0
        """How many of the deeds were done."""
        ask = ScriptedModel.ask

        async def interrupted(model: ScriptedModel, request: object) -> object:
            lane = model._lane.split("/", 1)[1]
            self._asked[lane] += 1
            deed = self._deeds.pop((lane, self._asked[lane]), None)
            if deed is not None:
                deed()
                self.done += 1
            return await ask(model, request)  # type: ignore[arg-type]

        patch.setattr(ScriptedModel, "ask", interrupted)

    def before(self, lane: str, turn: int, deed: Deed) -> None:
        """Let `deed` happen before this lane's turn; lanes are `task/attempt/role`, turns count from 1."""
        self._deeds[lane, turn] = deed
