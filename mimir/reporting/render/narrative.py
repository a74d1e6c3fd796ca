"""Narrative of a report: the texts that reporters wrote, as a value. Pure."""

import json
from collections.abc import Mapping
from dataclasses import field

from mimir.domain.json_value import as_object, as_text
from mimir.domain.value_class import value_class


@value_class
class Narrative:
    """Texts that the reporters wrote; untrusted."""

    run: str = ""
    """Of the PM reporter. Empty: there is none."""
    tasks: Mapping[str, str] = field(default_factory=dict[str, str])
    """Failed task → text of its QC reporter."""

    def dump(self) -> str:
        """Return the JSON text that is stored."""
        return json.dumps({"run": self.run, "tasks": dict(self.tasks)}, sort_keys=True)

    @classmethod
    def load(cls, text: str) -> "Narrative":
        """Read the text that `dump` wrote; an unreadable text is no narrative."""
        try:
            value = as_object(json.loads(text))
        except (ValueError, RecursionError):
            return NO_PROSE
        tasks = as_object(value.get("tasks"))
        return cls(
            run=as_text(value.get("run")),
            tasks={task: words for task, words in tasks.items() if isinstance(words, str)},
        )


NO_PROSE = Narrative()
