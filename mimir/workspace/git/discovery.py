"""What git knows of the person's directory: which repository it is in, and where that keeps its objects.

The rule: the person's repository is only asked here; what is written into it is in `sharing`, and it is
nothing but objects and refs of mimir's own.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mimir.errors import WorkspaceError
from mimir.workspace.git import user_ignores
from mimir.workspace.git.git_command import GitCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRepository:
    """The repository that a project is, or is a part of."""

    git: GitCommand
    """Runs in it, with nothing of its configuration that runs programs."""
    top: Path
    """Its work tree."""
    prefix: str
    """Where the project lies in it, without slashes around; "": the project is the work tree."""
    common: Path
    """Git directory that all its work trees share."""
    objects: Path
    object_format: str

    async def checked_out_commit(self) -> tuple[str | None, str | None, str]:
        """Return the commit that is checked out, the branch, and the commit's tree (empty: not asked): one question for three."""
        asked = ("rev-parse", "HEAD^{commit}", "HEAD^{tree}", "--abbrev-ref=loose", "HEAD")
        ended = await self.git.run(*asked, ok=None)
        answers = ended.word.split("\n")
        if ended.code != 0 or len(answers) != 3:  # there is no commit yet
            return await self.head(), await self.branch(), ""
        head, tree, branch = answers
        return head, None if branch == "HEAD" else branch, tree

    async def head(self) -> str | None:
        """Return the commit that is checked out; None: there is none yet."""
        ended = await self.git.run("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=None)
        return ended.word if ended.code == 0 else None

    async def branch(self) -> str | None:
        """Return the branch that is checked out, also one without commits; None: detached."""
        ended = await self.git.run("symbolic-ref", "-q", "--short", "HEAD", ok=None)
        return ended.word if ended.code == 0 else None

    def shallow(self) -> bytes | None:
        """Return the list of commits whose parents are not there; None: all are."""
        return _bytes_of(self.common / "shallow")

    def ignore_rules(self) -> list[str]:
        """Return the rules from outside the project, as rules at the project's top.

        They stand in `.git/info/exclude` and in the `.gitignore` files of the directories above the project.
        """
        found = user_ignores.push_rules_down(
            user_ignores.lines(_text_of(self.common / "info/exclude")), self.prefix
        )
        names = self.prefix.split("/") if self.prefix else []
        for depth in range(len(names)):
            above = self.top.joinpath(*names[:depth]) / ".gitignore"
            found += user_ignores.push_rules_down(
                user_ignores.lines(_text_of(above)), "/".join(names[depth:])
            )
        return found


async def find(project: Path, program: str = "git") -> UserRepository | None:
    """Find the repository of a directory; None: it is worked on as a plain directory.

    A directory inside a work tree in which nothing is tracked is not part of that repository: it lies there by chance.
    """
    outside = GitCommand(directory=None, program=program)
    answers = await _ask(outside, project)
    if answers is None:
        return None
    top, directory, common, objects, object_format = answers
    repository = UserRepository(
        git=GitCommand(directory=Path(directory), program=program),
        top=Path(top),
        prefix=_prefix(project, top),
        common=Path(common),
        objects=Path(objects),
        object_format=object_format,
    )
    return repository if await _is_part(repository) else None


def _prefix(project: Path, top: str) -> str:
    relative = os.path.relpath(os.path.realpath(project), os.path.realpath(top))
    return "" if relative == "." else relative


_QUESTIONS = (
    ("--show-toplevel",),
    ("--absolute-git-dir",),
    ("--git-common-dir",),
    ("--git-path", "objects"),
    ("--show-object-format",),
)


async def _ask(git: GitCommand, project: Path) -> Sequence[str] | None:
    """Ask git where things are; one by one if a directory's name holds a line end."""
    ask = ("-C", str(project), "rev-parse", "--path-format=absolute")
    whole = await git.run(*ask, *(word for question in _QUESTIONS for word in question), ok=None)
    if whole.code != 0:
        return None
    answers = whole.word.split("\n")
    if len(answers) == len(_QUESTIONS):
        return answers
    return [(await git.run(*ask, *question)).word for question in _QUESTIONS]


async def _is_part(repository: UserRepository) -> bool:
    """Say whether the project belongs to the repository that it lies in."""
    if not repository.prefix:
        return True
    tracked = await repository.git.run(
        "ls-files", "-z", "--", repository.prefix, tree=repository.top, literal=True, max_bytes=1
    )
    return bool(tracked.out)


async def global_rules(home: Path, program: str = "git") -> list[str]:
    """Return the rules of the person's global ignore file.

    Args:
        home: Home directory; git's own configuration there names the file, else it is `.config/git/ignore`.
        program: The git to ask.
    """
    for configuration in (home / ".gitconfig", home / ".config/git/config"):
        if not _is_there(configuration):
            continue
        asked = await GitCommand(directory=None, program=program).run(
            *("config", "--type=path", "--get", "core.excludesFile"),
            ok=None,
            extra={
                "HOME": str(home),
                "GIT_CONFIG_GLOBAL": str(configuration),
                "GIT_CONFIG_COUNT": "0",
            },
        )
        if asked.code == 0 and asked.word:
            return user_ignores.lines(_text_of(Path(asked.word)))
    return user_ignores.lines(_text_of(home / ".config/git/ignore"))


def _is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110  false also where one may not look


def _text_of(path: Path) -> str:
    return os.fsdecode(_bytes_of(path) or b"")


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be read: {error.strerror}.", next_step="Make it readable."
        ) from error
