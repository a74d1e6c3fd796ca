"""Discovery of the repository that a project is in, and of its ignore rules.

It only reads; `user_refs` and `user_branch` write the few things that mimir adds.
"""

import os
from pathlib import Path

from mimir.domain.value_class import value_class
from mimir.errors import WorkspaceError
from mimir.workspace.git import user_ignores
from mimir.workspace.git.git_command import GitCommand


@value_class
class UserRepository:
    """The repository that a project is, or is a part of."""

    git: GitCommand
    """Runs in it, without configuration that runs programs."""
    top: Path
    prefix: str
    """Relative path of the project in the work tree; "": the project is the work tree."""
    common: Path
    """Git directory that all its work trees share."""
    objects: Path
    object_format: str

    async def checked_out_commit(self) -> tuple[str | None, str | None, str]:
        """Return the checked-out commit, the branch, and the tree (empty: unknown)."""
        asked = ("rev-parse", "HEAD^{commit}", "HEAD^{tree}", "--abbrev-ref=loose", "HEAD")
        ended = await self.git.run(*asked, ok=None)
        answers = ended.word.split("\n")
        if ended.code != 0 or len(answers) != 3:  # there is no commit yet
            return await self.head(), await self.branch(), ""
        head, tree, branch = answers
        return head, None if branch == "HEAD" else branch, tree

    async def head(self) -> str | None:
        """Return the checked-out commit; None: there is none."""
        ended = await self.git.run("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=None)
        return ended.word if ended.code == 0 else None

    async def branch(self) -> str | None:
        """Return the checked-out branch, even without commits; None: detached."""
        ended = await self.git.run("symbolic-ref", "-q", "--short", "HEAD", ok=None)
        return ended.word if ended.code == 0 else None

    def shallow(self) -> bytes | None:
        """Return the list of commits without parents here; None: not a shallow clone."""
        return read_if_exists(self.common / "shallow")

    def ignore_rules(self) -> list[str]:
        """Return the rules from outside the project, as rules at its top."""
        found = user_ignores.push_rules_down(
            user_ignores.parse_rules(_text_of(self.common / "info/exclude")), self.prefix
        )
        names = self.prefix.split("/") if self.prefix else []
        for depth in range(len(names)):
            above = self.top.joinpath(*names[:depth]) / ".gitignore"
            found += user_ignores.push_rules_down(
                user_ignores.parse_rules(_text_of(above)), "/".join(names[depth:])
            )
        return found


async def find(project: Path, program: str = "git") -> UserRepository | None:
    """Find the repository of a directory; None: it is a plain directory."""
    git = GitCommand(directory=None, program=program)
    ask = ("-C", str(project), "rev-parse", "--path-format=absolute")
    # One call for all answers; one call each if the name of a directory holds a line end.
    whole = await git.run(*ask, *(word for question in _QUESTIONS for word in question), ok=None)
    if whole.code != 0:
        return None
    answers = whole.word.split("\n")
    if len(answers) != len(_QUESTIONS):
        answers = [(await git.run(*ask, *question)).word for question in _QUESTIONS]
    top, directory, common, objects, object_format = answers
    repository = UserRepository(
        git=GitCommand(directory=Path(directory), program=program),
        top=Path(top),
        prefix=_prefix(project, top),
        common=Path(common),
        objects=Path(objects),
        object_format=object_format,
    )
    if not repository.prefix:
        return repository
    # A directory without tracked files is in the work tree by chance.
    tracked = await repository.git.run(
        "ls-files", "-z", "--", repository.prefix, tree=repository.top, literal=True, max_bytes=1
    )
    return repository if tracked.out else None


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


async def global_rules(home: Path, program: str = "git") -> list[str]:
    """Return the rules of the user's global ignore file, which git's configuration may name."""
    named = await read_setting(
        GitCommand(directory=None, program=program), home, "core.excludesFile", type="path"
    )
    return user_ignores.parse_rules(_text_of(Path(named or home / ".config/git/ignore")))


async def read_setting(git: GitCommand, home: Path, name: str, *, type: str = "") -> str:
    """Return a setting of a repository, else of the user; empty: not set."""
    own = [one for one in (home / ".gitconfig", home / ".config/git/config") if _is_there(one)]
    for configuration in own or [Path("/dev/null")]:
        asked = await git.run(
            *("config", *([f"--type={type}"] if type else []), "--get", name),
            ok=None,
            extra={
                "HOME": str(home),
                "GIT_CONFIG_GLOBAL": str(configuration),
                "GIT_CONFIG_COUNT": "0",
            },
        )
        if asked.code == 0 and asked.word:
            return asked.word
    return ""


def _is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110  false also without permission


def _text_of(path: Path) -> str:
    return os.fsdecode(read_if_exists(path) or b"")


def read_if_exists(path: Path) -> bytes | None:
    """Return the bytes of a file; None: there is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be read: {error.strerror}.", next_step="Make it readable."
        ) from error
