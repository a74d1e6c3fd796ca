"""Text that would steer a terminal or load something, put wherever text can come from: shown harmlessly, or not at all."""

import json
import unicodedata
from collections.abc import Mapping

import pytest
from markdown_it import MarkdownIt

from mimir.planning.renderer import render
from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer
from tests.support.trust_sizes import Cases, sample
from tests.support.whole_run import PREAMBLE, REST, calls, check, plan, qc, step, worker, writes

REMOTE = (
    "![x](http://evil.example/p.png) [click](http://evil.example) <img src=//evil.example/q> <http://evil.example> "
    "[ref]: http://evil.example/r <script>fetch('//evil.example')</script> <style>@import '//evil.example'</style> "
    "[x](javascript:alert(1)) ![y][ref] [z][ref] <a href='//evil.example'>a</a> http://evil.example www.evil.example"
)
NASTY: Mapping[str, str] = {
    "colour": "\x1b[31mred\x1b[0m",
    "cursor": "\x1b[2J\x1b[H\x1b[1A",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZWNobyBvd25lZA==\x07",
    "answers": "\x1b[c\x1b[6n\x05\x1bZ",
    "c1": "\x9b31m\x9d52;c;eA==\x9c\x90",
    "bell and backspace": "\a\b\b\bok\x7f",
    "return": "failed\rcompleted",
    "bidi": "\u202epassed\u202c\u2066x\u2069\u200f",
    "invisible": "a\u200bb\u2060c\ufeffd\u00ade\U000e0041",
    "separators": "a\u2028b\u2029c\x85d\x0bd\x0ce",
    "markdown": "\n# Verdict: PASS\n\n| a | b |\n|---|---|\n\n---\n\n```\n</details>\n",
    "remote": REMOTE,
    "fence": "`````\n````text\n" + REMOTE + "\n~~~\n",
    "definition": "\n\n[ref]: http://evil.example\n\n![ref]\n\n<!-- -->",
}


def raw(text: str) -> list[str]:
    """Return text that may not reach a terminal: control bytes but line feeds, and characters that turn or hide text."""
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [repr(c) for c in text if c not in "\n" and unicodedata.category(c) in bad]


def remote(markdown: str) -> list[str]:
    """Name content that a reader's program would load or follow: pictures, HTML, links that leave the directory."""
    found: list[str] = []
    for token in MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(markdown):
        for one in (token, *(token.children or ())):
            if one.type in ("image", "html_block", "html_inline"):
                found.append(f"{one.type}: {one.content[:80]} {one.attrs}")
            if one.type == "link_open" and not _is_here(str(one.attrGet("href"))):
                found.append(f"link: {one.attrGet('href')}")
    return found


def _is_here(target: str) -> bool:
    return ":" not in target and not target.startswith(("/", "\\"))


def in_all(nasty: str) -> dict[str, object]:
    """Return a model script with this text in every answer."""
    verdict = {"verdict": {"auto": "fail", "issues": [nasty], "requiredFixes": [nasty], "feedback": nasty}, "repeat": "forever"}  # fmt: skip
    odd = {"calls": [calls("run", command="printf '\\033]52;c;eA==\\a\\033[31m'; cat odd.txt; exit 3"), calls(f"read{nasty}", path=nasty)]}  # fmt: skip
    parts = [
        worker("a", odd, writes("a.txt", f"a\n{nasty}"), f"Done. {nasty}"),
        qc("a", verdict),
        {"role": "agentinator", "turns": [{"text": f"{PREAMBLE}\n{nasty}", "repeat": "forever"}]},
        {"role": "*_reporter", "turns": [{"text": f"Prose. {nasty}", "repeat": "forever"}]},
    ]
    return {"parts": [*parts, *REST]}


def plan_text_with(nasty: str) -> str:
    """Return a plan with this text in each of its fields."""
    flat = nasty.replace("\n", " ").replace("\r", " ")
    made = plan(step("a", checks=(check("sh", "-c", "cat odd.txt; grep -q ^a a.txt"),)))
    text = (
        render(made)
        .replace("A journey", f"A journey {flat}")
        .replace("It is done.", f"Goal {flat}")
    )
    text = text.replace("Write a.txt\n", f"Write {flat}\n", 1).replace(
        "a.txt is right", f"right {flat}"
    )
    return text.replace("Writer of small files", f"Writer {flat}").replace(
        "Write a.txt.", f"Write. {nasty}"
    )


TYPED = (
    ("check", "plan.md"), ("check", "plan.md", "--json"), ("execute", "plan.md", "--yes"), ("status",), ("status", "--json"),
    ("report",), ("verify",), ("export", "--format", "mermaid"), ("check", "odd.md"), ("resume",), ("doctor",),
    ("execute", "plan.md", "--yes", "--json"),
)  # fmt: skip


@pytest.mark.parametrize("name", sample(list(NASTY), 1))
def test_no_text_contains_terminal_codes_or_loads_content(name: str, cases: Cases, desk: Desk):
    nasty = NASTY[name]
    desk.write("odd.txt", f"{nasty}\n")
    desk.write("plan.md", plan_text_with(nasty))
    desk.write("odd.md", f"# {nasty}\n**Task ID:** {nasty}\n**Dependencies:** {nasty}\n{nasty}")
    with PlayServer(in_all(nasty)) as server:
        desk.ask(server)
        for words in TYPED:
            with cases.case((name, *words)):
                said = desk.type(*words)
                assert raw(said.out) == []
                assert raw(said.err) == []
    for path in [*desk.project.glob("chains/**/*.md"), *desk.project.glob("generated-agents/*.md")]:
        if path.name == "execution-report.md":
            with cases.case((name, path.name)):
                text = path.read_text(encoding="utf-8")
                assert raw(text) == []
                assert remote(text) == []
    assert list(desk.project.glob("chains/**/execution-report.md"))


@pytest.mark.parametrize("fault", ["unauthorized", "bad_request"])
def test_text_of_an_endpoint_has_no_terminal_codes(
    fault: str, cases: Cases, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    from mimir.llm.scripted import faults

    nasty = "".join(NASTY.values())
    staged = {**faults.FAULTS, fault: faults.ScriptedFault(kind="status", status=faults.FAULTS[fault].status, says=nasty, code=nasty)}  # fmt: skip
    monkeypatch.setattr("tests.support.script_server.FAULTS", staged)
    desk.write("plan.md", render(plan(step("a"))))
    with PlayServer({"parts": [worker("a", {"fault": fault}), *REST]}) as server:
        desk.ask(server)
        for words in (
            ("execute", "plan.md", "--yes"),
            ("status",),
            ("execute", "plan.md", "--yes", "--json"),
        ):
            with cases.case((fault, *words)):
                said = desk.type(*words)
                assert raw(said.out) == []
                assert raw(said.err) == []


def test_report_scan_finds_remote_content(cases: Cases):
    for text in (
        "![x](http://e)",
        "<img src=x>",
        "[x](http://e)",
        "[x][r]\n\n[r]: http://e",
        "<http://e>",
        "<script>x</script>",
    ):
        with cases.case(text):
            assert remote(text) != []
    assert remote("`![x](http://e)` [here](deliverables/a.md)\n\n```\n<img src=x>\n```\n") == []
    assert json.dumps(raw("\x1b\u202e")) != "[]"
