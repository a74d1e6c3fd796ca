"""Programs of `cli` agents: a preset, and its pinned part in a run. Pure."""

import re
from typing import Literal

from mimir.domain.agent_definition import CrashBehaviour
from mimir.domain.value_class import value_class

TaskPlace = Literal["stdin", "argument", "flag"]
"""Place of the task: standard input, the last argument, or `{task}` in the command."""
PROGRAM_TOOL = "program"
"""Name of the one call of a program in the worker's transcript."""
PLACEHOLDERS = ("model", "prompt", "task")
MAX_ARGUMENT_BYTES = 120_000
"""The kernel refuses a longer argument."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@value_class
class ProgramPreset:
    """Call, output format and confinement of a program."""

    name: str
    command: tuple[str, ...]
    """Words; `{model}`, `{prompt}` and `{task}` are replaced. There is no shell."""
    prompt: TaskPlace = "stdin"
    output: str = "text"
    """Name of a reader, `json:PATH` or `jsonl:TYPE.PATH`."""
    environment: tuple[str, ...] = ()
    """Names of the variables that it gets; values are never stored."""
    network: bool = False
    home: tuple[str, ...] = ()
    """Paths of the user's home that it sees; its changes of them are thrown away."""
    home_writable: tuple[str, ...] = ()
    """Paths of the user's home that it may change."""
    version_command: tuple[str, ...] = ()


@value_class
class PinnedProgram:
    """The program of a definition, as a run pins it."""

    preset: ProgramPreset
    model: str = ""
    """Empty: the program's default."""
    on_crash: CrashBehaviour = "again"
    reserve_tokens: int = 200_000
    """Charged if the program reports no usage."""

    @property
    def title(self) -> str:
        """Name for users and prices."""
        return f"{self.preset.name}/{self.model}" if self.model else self.preset.name


def unknown_placeholder(command: tuple[str, ...]) -> str:
    """Return the first placeholder that mimir does not know; empty: there is none."""
    found = (name for word in command for name in _PLACEHOLDER.findall(word))
    return next((name for name in found if name not in PLACEHOLDERS), "")


def has_placeholder(command: tuple[str, ...], name: str) -> bool:
    """Return whether a command holds a placeholder."""
    return any(name in _PLACEHOLDER.findall(word) for word in command)


def fill_command(program: PinnedProgram, *, prompt: str, task: str) -> tuple[tuple[str, ...], str]:
    """Return the words of the call, and its standard input.

    A word whose placeholder is empty is left out, with the option before it.
    """
    preset = program.preset
    whole = task if has_placeholder(preset.command, "prompt") else f"{prompt}\n\n{task}"
    values = {"model": program.model, "prompt": prompt, "task": whole}
    words: list[str] = []
    for word in preset.command:
        named = _PLACEHOLDER.fullmatch(word)
        if named and not values.get(named[1], word):
            if words and words[-1].startswith("-"):
                words.pop()
            continue
        # In one pass: a placeholder in the task is text.
        words.append(_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word))
    if has_placeholder(preset.command, "task"):
        return tuple(words), ""
    return ((*words, whole), "") if preset.prompt == "argument" else (tuple(words), whole)
