"""Parsers of the reports of test runners: bytes to the state of each test. Pure.

A report is untrusted: every parser is bounded by `StateCollector`, and raises `ReportError` for text that its runner does not write.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

from mimir.domain.json_value import as_member, as_object, as_objects, as_text, as_texts
from mimir.domain.test_results import STATES, TestState

MAX_TESTS = 200_000
_MAX_ID = 400
_MAX_DEPTH = 50
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_WORST: Mapping[TestState, int] = {
    state: rank
    for rank, state in enumerate(("passed", "xfailed", "skipped", "failed", "errored"))
    if state in STATES
}


class ReportError(Exception):
    """The report is no result; the text states the problem."""


class StateCollector:
    """States of the tests of one run, and the runners that reported them."""

    def __init__(self) -> None:
        """Start without tests."""
        self.states: dict[str, TestState] = {}
        self.runners: dict[str, None] = {}
        self.fallback = ""
        """Why a runner cannot report; empty: no runner has said so."""

    def add(self, test: str, state: TestState) -> None:
        """Add a result; the worst one of a test counts.

        Raises:
            ReportError: There are too many tests.
        """
        name = _UNPRINTABLE.sub("�", test[:_MAX_ID])
        known = self.states.get(name)
        if known is None and len(self.states) >= MAX_TESTS:
            raise ReportError(f"it names more than {MAX_TESTS:,} tests")
        if known is None or _WORST[state] > _WORST[known]:
            self.states[name] = state

    def add_unfinished(self, tests: Iterable[str]) -> None:
        """Add tests that began, or were to begin, and never ended."""
        for test in tests:
            if _UNPRINTABLE.sub("�", test[:_MAX_ID]) not in self.states:
                self.add(test, "errored")


def parse_lines(data: bytes, found: StateCollector) -> None:
    """Parse the lines of `reporters/mimir_results.py`."""
    planned: list[str] = []
    is_ended = is_begun = False
    for line in data.splitlines():
        match as_texts(_load(line)):
            case ["runner", text]:
                found.runners[text[:40]] = None
                is_begun = True
            case ["planned", text]:
                planned.append(text)
            case ["fallback", text]:
                found.fallback = text[:_MAX_ID]
            case ["end", _]:
                is_ended = True
            case [kind, text] if state := as_member(kind, STATES):
                found.add(text, state)
            case _:
                raise ReportError("it is malformed")
    if is_begun and not is_ended:
        raise ReportError("its process ended before all tests had run")
    found.add_unfinished(planned)


def _load(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ReportError("it is malformed") from None


def parse_go(data: bytes, found: StateCollector) -> None:
    """Parse the lines of `go test -json`; lines of other programs are mixed with them."""
    found.runners["go"] = None
    running: dict[str, None] = {}
    failed: dict[str, list[str]] = {}
    for line in data.splitlines():
        if not line.startswith(b"{"):
            continue
        event = as_object(_load(line))
        action, package = as_text(event.get("Action")), as_text(event.get("Package"))
        name = as_text(event.get("Test"))
        test = f"{package}::{name}" if name else package
        state: TestState | None = _GO_STATES.get(action)
        if action == "run":
            running[test] = None
        elif state is not None and name:
            running.pop(test, None)
            if state == "failed":
                failed.setdefault(package, []).append(test)
            else:
                found.add(test, state)
        elif state == "failed":
            running[test] = None  # the package did not build, or ended early
        elif state == "passed":
            failed.pop(package, None)  # tests of a framework, whose failures its own tests expect
    for test in sum(failed.values(), list[str]()):
        found.add(test, "failed")
    found.add_unfinished(running)


_GO_STATES: Mapping[str, TestState] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_TARGET = re.compile(r"^ *(Running|Doc-tests) (?:unittests )?(\S+)")
_COUNT = re.compile(r"^running (\d+) tests?$")
_TEST = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored(?:,.*)?)$")
_EXAMPLE = re.compile(r"(.+) \(line (\d+)\)(.*)")


def parse_libtest(data: bytes, found: StateCollector) -> None:
    """Parse the output of `cargo test`."""
    found.runners["cargo"] = None
    programs: list[str] = []
    examples: list[str] = []
    blocks: list[_ProgramTests] = []
    latest = ""
    for line in _COLOUR.sub("", data.decode("utf-8", "replace")).splitlines():
        if place := _TARGET.match(line):
            latest = place[2]
            (examples if place[1] == "Doc-tests" else programs).append(latest)
        elif count := _COUNT.match(line):
            blocks.append(_ProgramTests(latest, int(count[1])))
        elif test := _TEST.match(line):
            if not blocks:
                blocks.append(_ProgramTests(latest, 0))
            blocks[-1].tests.append((test[1], _RUST_STATES[test[2][:6]]))
    if len(blocks) == len(programs) + len(examples) or (examples and len(blocks) > len(programs)):
        # Two streams: a busy machine shows several programs before the tests of the first one.
        for block, target in zip(blocks, [*programs, *examples], strict=False):
            block.target = target
    for block in blocks:
        if len(block.tests) < block.count:
            raise ReportError(f"it has {len(block.tests)} of {block.count} tests of a test program")
    _add_tests(blocks, found)


@dataclass(slots=True)
class _ProgramTests:
    """Tests of one test program."""

    target: str
    count: int
    tests: list[tuple[str, TestState]] = field(default_factory=list[tuple[str, TestState]])


def _add_tests(blocks: Sequence[_ProgramTests], found: StateCollector) -> None:
    # An example is named by its line, which moves with every change above it.
    examples: dict[str, list[tuple[int, TestState]]] = {}
    for block in blocks:
        for name, state in block.tests:
            if example := _EXAMPLE.fullmatch(name):
                name = f"{block.target}::{example[1]}{example[3]}"
                examples.setdefault(name, []).append((int(example[2]), state))
            else:
                found.add(f"{block.target}::{name}", state)
    for name, states in examples.items():
        for number, (_, state) in enumerate(sorted(states), 1):
            found.add(f"{name} #{number}" if number > 1 else name, state)


_RUST_STATES: Mapping[str, TestState] = {"ok": "passed", "FAILED": "failed", "ignore": "skipped"}
_JEST_STATES: Mapping[str, TestState] = {
    "passed": "passed",
    "failed": "failed",
    **dict.fromkeys(("pending", "skipped", "todo", "disabled"), "skipped"),
}


def parse_jest(data: bytes, found: StateCollector) -> None:
    """Parse the JSON report of jest or vitest."""
    report = as_object(_load(data))
    if "testResults" not in report:
        raise ReportError("it is malformed")
    found.runners["jest"] = None
    for file in as_objects(report.get("testResults")):
        path = as_text(file.get("name")).removeprefix("/workspace/")
        tests = as_objects(file.get("assertionResults"))
        if not tests and file.get("status") == "failed":
            found.add(path, "errored")
        for test in tests:
            names = [*as_texts(test.get("ancestorTitles")), as_text(test.get("title"))]
            state = _JEST_STATES.get(as_text(test.get("status")), "errored")
            found.add(f"{path}::{' > '.join(name for name in names if name)}", state)


def parse_junit(data: bytes, found: StateCollector) -> None:
    """Parse JUnit XML; entities and document types are refused."""
    _JunitParser(found).parse(data)


def parse_ctest(data: bytes, found: StateCollector) -> None:
    """Parse the JUnit XML of ctest; its names have no class."""
    found.runners["ctest"] = None
    parse_junit(data, found)


PROGRAM_RUNNERS = frozenset(("ctest", "gtest"))
"""Runners of compiled test programs, which report their tests in JUnit XML."""


class _JunitParser:
    def __init__(self, found: StateCollector) -> None:
        self._found = found
        self._depth = 0
        self._test = ""
        self._state: TestState = "passed"

    def parse(self, data: bytes) -> None:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        try:
            parser.Parse(data, True)
        except expat.ExpatError:
            raise ReportError("it is malformed") from None

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ReportError("it is malformed")
        if name == "testsuites" and attributes.get("name") == "AllTests":
            self._found.runners["gtest"] = None
        if name == "testcase" and attributes.get("status") != "notrun":
            place = attributes.get("file") or attributes.get("classname", "")
            self._test = f"{place}::{attributes.get('name', '')}"
            self._state = "passed"
        elif name in _JUNIT_STATES and self._test:
            self._state = _JUNIT_STATES[name]

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name == "testcase" and self._test:
            if PROGRAM_RUNNERS.isdisjoint(self._found.runners):
                self._found.runners.setdefault("junit")
            self._found.add(self._test, self._state)
            self._test = ""

    def _refuse(self, *_: object) -> None:
        raise ReportError("it declares a document type")


_JUNIT_STATES: Mapping[str, TestState] = {
    "failure": "failed",
    "error": "errored",
    "skipped": "skipped",
}

PARSERS: Mapping[str, Callable[[bytes, StateCollector], None]] = {
    ".jsonl": parse_lines,
    ".gojson": parse_go,
    ".libtest": parse_libtest,
    ".json": parse_jest,
    ".xml": parse_junit,
    ".ctest": parse_ctest,
}
"""Parser by the ending of a report's file."""
