"""`mimir completion`: commands, options, runs, tasks, plans, questions, models in a shell."""

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from mimir.cli.session import CommandSession

if TYPE_CHECKING:
    from typer._click.core import Command

    from mimir.bootstrap.completion_source import Candidates

_RUNS = ("status", "show", "log", "logs", "report", "verify", "apply", "resume", "pause", "cancel",
         "export", "replay")  # fmt: skip
_PLANS = ("execute", "run", "check", "lint")
_SCRIPTS = {
    "bash": """\
_mimir() {
    local IFS=$'\\n'
    COMPREPLY=($(mimir __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}
complete -o default -F _mimir mimir
""",
    "zsh": """\
#compdef mimir
_mimir() {
    local -a found
    found=(${(f)"$(mimir __complete "${(@)words[2,CURRENT]}" 2>/dev/null | sed 's/:/\\\\:/g; s/\\t/:/')"})
    _describe mimir found || _files
}
compdef _mimir mimir
""",
    "fish": """\
complete -c mimir -a '(mimir __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}

Shell = Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish")]


def completion(session: CommandSession, shell: Shell) -> int:
    """Print the completion script of a shell.

    It completes commands, options, runs, tasks, plans, questions and models. For zsh, write it to a file
    _mimir in a directory of fpath; for fish, to ~/.config/fish/completions/mimir.fish.
    """
    session.console.print_exact(_SCRIPTS[shell].rstrip("\n"))
    return 0


def answer_shell(words: Sequence[str], group: "Command") -> int:
    """Print the completions of the last of `words`, a word and its description a line."""
    from mimir.cli.console import clean_line

    *before, last = words or [""]
    # A shell shows an error of its completion in the middle of a line.
    with contextlib.suppress(Exception):
        for word, text in find_candidates(before, last, group, Path.cwd()):
            if word.startswith(last) and word == clean_line(word):
                sys.stdout.write(f"{word}\t{clean_line(text, 60)}\n" if text else f"{word}\n")
    return 0


def find_candidates(
    before: Sequence[str], last: str, group: "Command", project: Path
) -> "Candidates":
    """Return the candidates for the word after `before`; `group` is the whole command."""
    command = group
    rest = [word for word in before if not word.startswith("-")]
    while rest and (inner := _commands(command).get(rest[0])):
        command, rest = inner, rest[1:]
    if _commands(command) and not last.startswith("-"):
        return [
            (name, one.get_short_help_str(60))
            for name, one in _commands(command).items()
            if not one.hidden
        ]
    if last.startswith("-"):
        return list(_options(command))
    return _values(command.name or "", before, last, project)


def _values(name: str, before: Sequence[str], last: str, project: Path) -> "Candidates":
    from mimir.bootstrap import completion_source

    option = before[-1] if before else ""
    if option == "--model":
        return completion_source.complete_models(project)
    if option in ("--only", "--explain"):
        return completion_source.complete_tasks(project, "")
    if name in _RUNS or option in ("--from", "--run"):
        run, slash, _ = last.partition("/")
        if name == "show" and slash:
            tasks = completion_source.complete_tasks(project, run)
            return [(f"{run}/{task}", title) for task, title in tasks]
        return completion_source.complete_runs(project)
    if name == "answer":
        given = [word for word in before if not word.startswith("-")][1:]
        if len(given) == 1:
            return completion_source.complete_answers(project, given[0])
        return () if given else completion_source.complete_questions(project)
    if name in _PLANS:
        from mimir.cli.arguments import plans_of

        return [(path.parent.name, "") for path in plans_of(project)]
    return ()


def list_names(group: "Command") -> list[str]:
    """Return the names of the listed commands of a group."""
    return [name for name, one in _commands(group).items() if not one.hidden]


def _commands(command: "Command") -> "Mapping[str, Command]":
    return cast("Mapping[str, Command]", getattr(command, "commands", {}))


def _options(command: "Command") -> Iterable[tuple[str, str]]:
    for parameter in command.params:
        text = str(getattr(parameter, "help", None) or "")
        yield from ((name, text) for name in parameter.opts if name.startswith("--"))
