"""Generator of pictures of a run in Neo4j Browser, with headless Chromium.

`python -m scripts.neo4j_picture` starts a server, runs `mimir demo` into it, and saves the result
of each stored query as a PNG in docs/neo4j. It controls Chromium through a pipe: no port, no
library.
"""

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from scripts.neo4j_server import page_of
from tests.support.local_neo4j import LocalServer, MissingError

ROOT = Path(__file__).resolve().parents[1]
QUERIES = ROOT / "docs" / "neo4j"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-quic",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
WIDE, HIGH = 1280, 800
PATIENCE_SECONDS = 120
MOST_BYTES = 300_000
UNAVAILABLE = 69


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", nargs="*", default=["dag", "task"], help="of docs/neo4j")
    try:
        return pictures(parser.parse_args().query)
    except MissingError as missing:
        print(f"No picture: {missing}.", file=sys.stderr)
        return UNAVAILABLE


def pictures(names: Sequence[str]) -> int:
    """Run the demo into a new server, and take a picture of each query's result."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise MissingError(f"none of {', '.join(NAMES)} found")
    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mimir-picture-")))
        server = LocalServer(room / "home", http_port=0, options=())
        server.start()
        stack.callback(server.stop)
        demo = [sys.executable, "-m", "mimir", "demo", f"--store={server.uri}", f"--directory={room}/demo"]  # fmt: skip
        if subprocess.run(demo, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode:
            raise MissingError("the demo did not come to its end")
        chromium = stack.enter_context(Chromium(program, room / "profile"))
        for name in names:
            query = (QUERIES / f"{name}.cypher").read_text(encoding="utf-8")
            png = taken(chromium, server, query)
            if len(png) > MOST_BYTES:
                raise MissingError(f"{name}.png has {len(png)} bytes, more than {MOST_BYTES}")
            (QUERIES / f"{name}.png").write_bytes(png)
            print(f"docs/neo4j/{name}.png: {len(png)} bytes")
    return 0


def taken(chromium: "Chromium", server: LocalServer, query: str) -> bytes:
    """Ask the browser's page and photograph its answer."""
    look = page_of(query, server.bolt_port, server.http_port)
    kept = {
        "neo4j.settings": {"initCmd": "", "playImplicitInitCommands": False},
        "neo4j.grass": style(),
    }
    page = chromium.opened(look, kept)
    chromium.until(page, f"!!document.querySelector('{_RUN}')")
    chromium.until(page, _CONNECTED)
    chromium.value(page, f"document.querySelector('{_RUN}').click()")
    chromium.until(page, "document.querySelectorAll('svg g.node').length > 0")
    # The drawing moves until its forces are at rest.
    chromium.until(page, _AT_REST, pause=1.0)
    # Further away, step by step: nodes at the edge are behind the overview.
    for _ in range(_STEPS_AWAY):
        if chromium.value(page, _ALL_SEEN) is True:
            break
        chromium.value(page, _AWAY)
        chromium.until(page, _AT_REST, pause=1.0)
    else:
        raise MissingError("some nodes stand behind the overview")
    return chromium.photograph(page, '[data-testid="frame"]')


def style() -> dict[str, dict[str, str]]:
    """Return the style file as Neo4j Browser keeps it."""
    text = (QUERIES / "mimir.grass").read_text(encoding="utf-8")
    return {
        selector: {name: value.strip('"') for name, value in _PROPERTY.findall(body)}
        for selector, body in _RULE.findall(text)
    }


_RULE = re.compile(r"^([\w.]+) \{((?:[^{}]|\{\w+\})*)\}", re.MULTILINE)
_PROPERTY = re.compile(r"([\w-]+): ([^;]+);")
_RUN = '[data-testid="editor-Run"]'
_CONNECTED = """[...document.querySelectorAll('[data-testid="activeEditor"]')].some(e => e.innerText.includes('neo4j$'))"""
_AT_REST = """(() => {
  const places = [...document.querySelectorAll('svg g.node')].map(n => n.getBoundingClientRect());
  const now = places.map(p => [p.x, p.y, p.width]).join();
  const same = window.mimirBefore === now; window.mimirBefore = now; return same;
})()"""
"""True once no node has moved since the last call."""
_ALL_SEEN = """(() => {
  const side = [...document.querySelectorAll('[data-testid="frame"] *')]
    .filter(e => e.innerText && e.innerText.startsWith('Overview')).map(e => e.getBoundingClientRect().x);
  return side.length > 0 && [...document.querySelectorAll('svg g.node')]
    .every(n => n.getBoundingClientRect().right < Math.max(...side) - 24);
})()"""
"""True if every node is left of the overview panel, whose elements begin with its title."""
_AWAY = "window.mimirBefore = ''; document.querySelector('[aria-label=zoom-out]').click()"
_STEPS_AWAY = 6


class Chromium:
    """Headless Chromium, controlled through its third and fourth descriptors."""

    def __init__(self, program: str, profile: Path) -> None:
        self._command = [program, *QUIET, f"--user-data-dir={profile}", f"--window-size={WIDE},{HIGH}", "about:blank"]  # fmt: skip
        self._number = 0
        self._rest = b""

    def __enter__(self) -> Self:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"', str(theirs_in), str(theirs_out), *self._command],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)
        self._process.terminate()
        self._process.wait()
        os.close(self._from)

    def opened(self, url: str, kept: Mapping[str, object]) -> str:
        """Open a page with these values in its local storage; return its session."""
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        page = str(
            self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        )
        stored = {name: json.dumps(value) for name, value in kept.items()}
        source = f"for (const [k, v] of Object.entries({json.dumps(stored)})) localStorage.setItem(k, v);"
        self.ask("Page.enable", {}, page)
        self.ask("Page.addScriptToEvaluateOnNewDocument", {"source": source}, page)
        self.ask("Page.navigate", {"url": url}, page)
        return page

    def photograph(self, page: str, selector: str) -> bytes:
        """Return a PNG of the first element that matches a selector."""
        place = f"JSON.parse(JSON.stringify(document.querySelector('{selector}').getBoundingClientRect()))"
        found = self.value(page, place)
        assert isinstance(found, dict)
        clip = {name: found[name] for name in ("x", "y", "width", "height")} | {"scale": 1}
        said = self.ask("Page.captureScreenshot", {"format": "png", "clip": clip}, page)
        return base64.b64decode(str(said["data"]))

    def value(self, page: str, script: str) -> object:
        """Return the value of a JavaScript expression on a page."""
        said = self.ask("Runtime.evaluate", {"expression": script, "returnByValue": True}, page)
        result = said["result"]
        return result.get("value") if isinstance(result, dict) else None

    def until(self, page: str, script: str, *, pause: float = 0.2) -> None:
        """Wait until a piece of JavaScript is true.

        Raises:
            MissingError: It never was.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while self.value(page, script) is not True:
            if time.monotonic() > end:
                raise MissingError(f"the page never came to {script[:60]!r}")
            time.sleep(pause)

    def ask(
        self, method: str, parameters: Mapping[str, object], page: str = ""
    ) -> dict[str, object]:
        """Ask, and wait for the answer.

        Raises:
            MissingError: Chromium refused, or ended.
        """
        self._number += 1
        whom = {"sessionId": page} if page else {}
        asked = {"id": self._number, "method": method, "params": dict(parameters), **whom}
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                if "error" in said:
                    raise MissingError(f"Chromium: {said['error']}")
                return said["result"]

    def _next(self) -> dict[str, object]:
        while b"\0" not in self._rest:
            more = os.read(self._from, 1 << 20)
            if not more:
                raise MissingError("Chromium ended")
            self._rest += more
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)


if __name__ == "__main__":
    raise SystemExit(main())
