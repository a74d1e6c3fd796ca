"""A real Neo4j server without Docker: jars from Maven, kept outside the tree; one small Java program beside its `pom.xml`.

For tests, and for `make neo4j`. It listens on loopback only and ends with the process that started it, also when that is killed.
"""

import contextlib
import fcntl
import hashlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue

HERE = Path(__file__).parent / "neo4j_server"
POM, SOURCE = HERE / "pom.xml", HERE / "LocalServer.java"
FETCH_SECONDS = 900
START_SECONDS = 300
MEMORY = "-Xmx512m"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""For a server that lives a minute: it starts sooner, and never gets as fast."""


class MissingError(Exception):
    """Something that a server needs is not on this machine; the message is one line."""


def version() -> str:
    """Return the server's version."""
    found = re.search(r"<neo4j.version>(.*?)<", POM.read_text(encoding="utf-8"))
    assert found, f"{POM} names no version"
    return found[1]


def cache() -> Path:
    """Return the folder of the jars: in the user's own home, with any HOME that a test has set."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    digest = hashlib.sha256(POM.read_bytes() + SOURCE.read_bytes()).hexdigest()[:8]
    return home / ".cache" / "mimir" / f"neo4j-{version()}-{digest}"


def fetch() -> Path:
    """Return the folder with the jars and the compiled program; Maven brings them the first time, and never again.

    Raises:
        MissingError: Java or Maven is not there, or Maven could not get the jars.
    """
    target = cache()
    if target.is_dir():
        return target
    missing = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    if missing:
        raise MissingError(f"{', '.join(missing)} not found (Java 17 with its compiler, and Maven)")
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one(target.parent / "fetching"):
        if not target.is_dir():
            _fetch_into(target)
    return target


def _fetch_into(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        made = Path(name) / "made"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={made}/lib"]
        _run(["mvn", "--batch-mode", "--quiet", f"--file={POM}", *goal])
        _run(["javac", "-d", f"{made}/classes", "-cp", f"{made}/lib/*", str(SOURCE)])
        made.replace(target)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise MissingError(f"{command[0]} took more than {FETCH_SECONDS} seconds") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or ["(nothing said)"]
        raise MissingError(f"{command[0]} failed: {said[0][:200]}")


@contextlib.contextmanager
def only_one(path: Path) -> Generator[None]:
    """Let one process in at a time."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class LocalServer:
    """One server process. `home` holds its data and survives it."""

    def __init__(
        self,
        home: Path,
        *,
        password: str = "",
        bolt_port: int = 0,
        http_port: int | None = None,
        options: tuple[str, ...] = QUICK,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Name a server; `start` starts it.

        Args:
            home: Its folder.
            password: Of its user `neo4j`; empty: anybody may come in.
            bolt_port: 0: any free one.
            http_port: Of Neo4j Browser; None: none.
            options: Of Java.
            settings: Of Neo4j.
        """
        self._home = home
        self._password = password
        self._options = options
        self._settings = {
            "server.bolt.listen_address": f"127.0.0.1:{bolt_port}",
            "server.http.enabled": "false" if http_port is None else "true",
            "server.http.listen_address": f"127.0.0.1:{http_port or 0}",
            "dbms.security.auth_enabled": "true" if password else "false",
            "server.memory.pagecache.size": "64m",
            "dbms.usage_report.enabled": "false",
            **(settings or {}),
        }
        self._process: subprocess.Popen[str] | None = None
        self.bolt_port = bolt_port
        self.http_port = 0

    @property
    def uri(self) -> str:
        """For a client, with user and password."""
        who = f"neo4j:{self._password}@" if self._password else ""
        return f"bolt://{who}127.0.0.1:{self.bolt_port}"

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers; on the same port as before, if it ran before.

        Raises:
            MissingError: There is no Java, or it did not start.
        """
        if self.bolt_port:
            address = f"127.0.0.1:{self.bolt_port}"
            self._settings["server.bolt.listen_address"] = address
            self._settings["server.bolt.advertised_address"] = address
        place = fetch()
        self._home.mkdir(parents=True, exist_ok=True)
        command = ["java", *self._options, MEMORY, "-cp", f"{place}/classes:{place}/lib/*", "LocalServer", str(self._home)]  # fmt: skip
        command += [f"{name}={value}" for name, value in self._settings.items()]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "NEO4J_PASSWORD": self._password},
        )
        said: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=_listen, args=(self._process, said), daemon=True).start()
        self.bolt_port, self.http_port = self._ready(said)

    def _ready(self, said: "SimpleQueue[str]") -> tuple[int, int]:
        last = ""
        with contextlib.suppress(Empty):
            while line := said.get(timeout=START_SECONDS):
                if line.startswith("READY "):
                    _, bolt, http = line.split()
                    return int(bolt), int(http)
                last = line.strip() or last
        self.stop()
        raise MissingError(f"the server did not start: {last[:200]}")

    def kill(self) -> None:
        """End it with SIGKILL; committed data stays."""
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """End it."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self.wait()

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._process:
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    with contextlib.suppress(OSError):
                        stream.close()


def _listen(process: "subprocess.Popen[str]", said: "SimpleQueue[str]") -> None:
    """Read the server's output, so that it never waits for a reader; an empty line: it has ended."""
    assert process.stdout
    with contextlib.suppress(ValueError):  # closed
        for line in process.stdout:
            said.put(line)
    said.put("")
