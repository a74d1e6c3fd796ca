"""Git as a program of this machine."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from mimir.errors import UnavailableError


def find_git() -> str:
    """Return the path of the git program.

    Raises:
        UnavailableError: There is none.
    """
    # A relative entry of PATH would let a project supply its own git.
    path = os.pathsep.join(entry for entry in os.get_exec_path() if Path(entry).is_absolute())
    found = shutil.which("git", path=path)
    if found is None:
        raise UnavailableError(
            "git is missing: no directory of PATH holds it.",
            next_step="Install git, 2.38 or newer.",
        )
    return found


# Other variables of git could point it at another repository or index.
_GIT_LOGIN = (
    "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME",
    "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "GIT_SSL_CAINFO", "SSL_CERT_FILE",
)  # fmt: skip


def git_login() -> Mapping[str, str]:
    """Return the environment in which git reaches a remote with the user's own login."""
    env = os.environ
    home = env.get("HOME", "/nonexistent")
    return {
        "HOME": home,
        "PATH": env.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": f"{home}/.gitconfig",
        # A question for a password would wait for ever.
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        **{name: env[name] for name in _GIT_LOGIN if name in env},
    }
