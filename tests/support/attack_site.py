"""A machine with secrets at rest and in memory, sockets that listen, and a process to signal; it records each access."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.projects import write_files

SECRET = "canary-4471-of-the-person"
VARIABLE = "CANARY_API_KEY"


@dataclass(kw_only=True)
class Site:
    """Surroundings of a sandbox, and the files that must stay unchanged."""

    top: Path
    listeners: dict[str, socket.socket] = field(default_factory=dict[str, socket.socket])
    victim: "subprocess.Popen[bytes]"
    """A process of the engine's user."""
    inherited: int
    """A descriptor of the engine that holds the secret and is inheritable by mistake."""

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def project(self) -> Path:
        return self.top / "project"

    @property
    def store(self) -> Path:
        return self.project / ".mimir/mimir.db"

    @property
    def other(self) -> Path:
        """Another task's workspace."""
        return self.project / ".mimir/work/run-1/other"

    def words(self) -> dict[str, str]:
        """Return the values that a probe may name: all but the secret."""
        port = {name: str(s.getsockname()[1]) for name, s in self.listeners.items() if "tcp" in name or "udp" in name}  # fmt: skip
        return {
            "HOME_DIR": str(self.home),
            "PROJECT": str(self.project),
            "STORE": str(self.store),
            "OTHER": str(self.other),
            "SOCKET": str(self.top / "engine.sock"),
            "ABSTRACT": f"mimir-canary-{os.getpid()}",
            "TCP4": port["tcp4"],
            "TCP6": port.get("tcp6", "9"),
            "UDP": port["udp"],
            "ENGINE": str(os.getpid()),
            "VICTIM": str(self.victim.pid),
            "FD": str(self.inherited),
            "TESTS": str(Path(__file__).resolve().parent),
        }

    def reached(self) -> list[str]:
        """Name the listeners that were reached, and all other changes of this machine."""
        found = [name for name, one in self.listeners.items() if _was_reached(one)]
        if self.victim.poll() is not None:
            found.append("the victim was ended")
        if os.path.lexists("/usr/mimir-probe"):
            found.append("/usr was written")
        return found

    def fingerprint(self) -> dict[str, str]:
        """Return every file of the site but the attacker's own workspace."""
        return {
            str(path): f"{path.lstat().st_mode:o} {_content(path)}"
            for path in sorted(self.top.rglob("*"))
            if "/attacker" not in str(path)
        }


def _content(path: Path) -> str:
    plain = path.is_file() and not path.is_symlink()
    return hashlib.sha256(path.read_bytes()).hexdigest() if plain else ""


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(10)
        else:
            listener.accept()[0].close()
    except (BlockingIOError, InterruptedError):
        return False
    return True


@contextlib.contextmanager
def site(top: Path) -> Generator[Site]:
    """Build one below `top`, with listeners in this process."""
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n-----END OPENSSH PRIVATE KEY-----\n"
    write_files(
        top,
        {
            "home/.ssh/id_ed25519": key,
            "home/.netrc": f"machine x password {SECRET}\n",
            "home/.aws/credentials": SECRET,
            "project/.env": f"KEY={SECRET}\n",
            "project/.git/config": f"[remote]\n\turl = https://u:{SECRET}@host/\n",
            "project/chains/x/chain-output.md": SECRET,
            "project/.mimir/mimir.db": SECRET,
            "project/.mimir/work/run-1/other/secret.txt": SECRET,
            "home/.config/mimir/mimir.toml": f'[llm]\napi_key = "{SECRET}"\n',
        },
    )
    with contextlib.ExitStack() as stack:
        listeners = {
            "tcp4": _listening(socket.AF_INET, ("127.0.0.1", 0)),
            "udp": _bound(("127.0.0.1", 0)),
            "unix": _listening(socket.AF_UNIX, os.path.relpath(top / "engine.sock")),
            "abstract": _listening(socket.AF_UNIX, f"\0mimir-canary-{os.getpid()}"),
        }
        with contextlib.suppress(OSError):
            listeners["tcp6"] = _listening(socket.AF_INET6, ("::1", 0))
        for one in listeners.values():
            stack.callback(one.close)
        held = top / "home/held"
        held.write_text(SECRET)
        inherited = os.open(held, os.O_RDWR)
        os.set_inheritable(inherited, True)
        stack.callback(os.close, inherited)
        victim = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"],
            env={**os.environ, VARIABLE: SECRET},
        )
        stack.callback(victim.wait)
        stack.callback(victim.send_signal, signal.SIGKILL)
        yield Site(top=top, listeners=listeners, victim=victim, inherited=inherited)


def _listening(family: int, address: object) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.bind(address)  # type: ignore[arg-type]
    made.listen()
    made.setblocking(False)
    return made


def _bound(address: tuple[str, int]) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(address)
    made.setblocking(False)
    return made
