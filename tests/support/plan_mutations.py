"""Mutations of plans as models write them, and a measure of silent losses."""

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mimir.planning import parser
from mimir.planning.format.labels import words
from mimir.planning.lint import plan_check
from mimir.planning.parser import ParsedPlan

Mutation = Callable[[list[str], random.Random], list[str]]

_LABEL = re.compile(r"^(\s*(?:[-*+]\s+)?)\*\*([^*:]+):\*\*(.*)$")
_ITEM = re.compile(r"^(\s*)[-*+]\s+(\[[ xX]?\]\s*)?(.*)$")
_TAGS = re.compile(r"</?\w{1,10}/?>")
_DEPENDENCIES = re.compile(r"dependenc|depends", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContent:
    """Tasks, dependencies and criteria of a plan."""

    tasks: frozenset[str]
    dependencies: frozenset[tuple[str, str]]
    criteria: frozenset[tuple[str, str, str]]
    """(task, words of the text, points)."""


def content_of(parsed: ParsedPlan) -> PlanContent:
    """Return the content of a parsed plan."""
    tasks = parsed.plan.tasks
    return PlanContent(
        tasks=frozenset(t.id for t in tasks),
        dependencies=frozenset((t.id, d) for t in tasks for d in t.dependencies),
        criteria=frozenset(
            (t.id, words(_TAGS.sub("", c.text)), str(c.points)) for t in tasks for c in t.criteria
        ),
    )


def silent_losses(text: str, changed: str) -> set[object]:
    """Return the losses and inventions of the changed text without a further finding."""
    one, other = parser.parse_plan(text), parser.parse_plan(changed)
    known = {(f.code, f.message) for f in plan_check.check(one, tools=())}
    if any((f.code, f.message) not in known for f in plan_check.check(other, tools=())):
        return set()
    before, after = content_of(one), content_of(other)
    lost: set[object] = set(before.tasks ^ after.tasks)
    lost |= before.dependencies - after.dependencies
    return lost | (before.criteria - after.criteria)


def _replace_one(
    lines: list[str], rng: random.Random, fits: Callable[[str], bool], change: Callable[[str], str]
) -> list[str]:
    places = [n for n in _free(lines) if fits(lines[n])]
    if not places:
        return lines
    at = rng.choice(places)
    return [*lines[:at], *change(lines[at]).split("\n"), *lines[at + 1 :]]


def _free(lines: list[str]) -> Iterable[int]:
    """Return the lines outside fences, prompt tags and comments."""
    fence = tag = comment = False
    for n, line in enumerate(lines):
        text = line.strip().casefold()
        if text.startswith(("```", "~~~")) and not tag:
            fence = not fence
        elif re.search(r"<prompt(-\d+)?>$", text):
            tag = True
        elif re.search(r"</prompt(-\d+)?>$", text):
            tag = False
        elif not fence and not tag and not comment and "<!--" not in text:
            yield n
        comment = (comment or "<!--" in text) and "-->" not in text


def _on(fits: re.Pattern[str], *forms: Callable[[re.Match[str]], str]) -> Mutation:
    """Return a mutation that rewrites one line that `fits` matches in one of the forms."""

    def mutate(lines: list[str], rng: random.Random) -> list[str]:
        form = rng.choice(forms)

        def change(line: str) -> str:
            match = fits.match(line)
            assert match is not None
            return form(match)

        return _replace_one(lines, rng, lambda line: fits.match(line) is not None, change)

    return mutate


def _label(which: re.Pattern[str], *forms: str) -> Mutation:
    """Return a mutation of one label; in a form, {0} is the indent and mark, {1} name, {2} value."""

    def mutate(lines: list[str], rng: random.Random) -> list[str]:
        form = rng.choice(forms)

        def fits(line: str) -> bool:
            match = _LABEL.match(line)
            return match is not None and which.search(match[2]) is not None

        def change(line: str) -> str:
            match = _LABEL.match(line)
            assert match is not None
            return form.format(match[1], match[2], match[3].strip())

        return _replace_one(lines, rng, fits, change)

    return mutate


def _untag(lines: list[str], rng: random.Random) -> list[str]:
    """Remove the tags of one prompt."""
    opened = [n for n, line in enumerate(lines) if line.strip() == "<prompt>"]
    if not opened:
        return lines
    at = rng.choice(opened)
    end = next((n for n in range(at, len(lines)) if lines[n].strip() == "</prompt>"), at)
    return [*lines[:at], *lines[at + 1 : end], *lines[end + 1 :]]


def _fence_prompt(lines: list[str], rng: random.Random) -> list[str]:
    opened = [n for n, line in enumerate(lines) if line.strip() == "<prompt>"]
    if not opened:
        return lines
    at = rng.choice(opened)
    end = next((n for n in range(at, len(lines)) if lines[n].strip() == "</prompt>"), at)
    return [*lines[:at], "```text", *lines[at + 1 : end], "```", *lines[end + 1 :]]


def _then(*parts: Mutation) -> Mutation:
    def mutate(lines: list[str], rng: random.Random) -> list[str]:
        for part in parts:
            lines = part(lines, rng)
        return lines

    return mutate


def _insert_before(fits: re.Pattern[str], *texts: str) -> Mutation:
    def mutate(lines: list[str], rng: random.Random) -> list[str]:
        text = rng.choice(texts)
        return _replace_one(
            lines, rng, lambda one: fits.search(one) is not None, lambda one: f"{text}\n{one}"
        )

    return mutate


def _full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _punctuation(text: str) -> str:
    return "".join(_full_width(c) if c in "#:()[]-.,*" else c for c in text)


def _list_marks(signs: str) -> list[Callable[[re.Match[str]], str]]:
    def form(sign: str) -> Callable[[re.Match[str]], str]:
        return lambda m: f"{m[1]}{sign} {m[2] or ''}{m[3]}"

    return [form(sign) for sign in signs]


_ANY = re.compile(r".*\S")
_TASK_ID = re.compile(r"task id", re.IGNORECASE)
_ALL_LABELS = re.compile(r"")
_CRITERIA_LABEL = re.compile(r"\*\*.*criteria.*:\*\*", re.IGNORECASE)
_TASK_HEAD = re.compile(r"^(#{1,6})\s+((?:\S+\s+)?[Tt]ask.*)$")
_POINTS = re.compile(r"^(\s*[-*+]\s+(?:\[[ xX]?\]\s*)?)\((\d+) ?pts\)(.*)$")

_COLONS = "︰：﹕︓꞉∶ːː׃։܃᠃⁚˸፡ꓽ"

KINDS: Mapping[str, Mutation] = {
    "heading-without-space": _on(_TASK_HEAD, lambda m: f"{m[1]}{m[2]}"),
    "heading-no-break-space": _on(_TASK_HEAD, lambda m: f"{m[1]}\u00a0{m[2]}"),
    "heading-ideographic-space": _on(_TASK_HEAD, lambda m: f"{m[1]}\u3000{m[2]}"),
    "heading-zero-width": _on(
        _TASK_HEAD, lambda m: f"\u200b{m[1]} {m[2]}", lambda m: f"{m[1]} \ufeff{m[2]}"
    ),
    "heading-full-width-marks": _on(_TASK_HEAD, lambda m: f"{_full_width(m[1])} {m[2]}"),
    "heading-full-width": _on(
        _TASK_HEAD,
        lambda m: f"{m[1]} {_full_width(m[2])}",
        lambda m: f"{m[1]} {_punctuation(m[2])}",
    ),
    "heading-quoted": _on(_TASK_HEAD, lambda m: f"> {m[1]} {m[2]}"),
    "heading-indented": _on(
        _TASK_HEAD, lambda m: f"    {m[1]} {m[2]}", lambda m: f"\t{m[1]} {m[2]}"
    ),
    "heading-html": _on(_TASK_HEAD, lambda m: f"<h3>{m[2]}</h3>", lambda m: f"<b>{m[2]}</b>"),
    "heading-escaped": _on(
        _TASK_HEAD, lambda m: f"\\{m[1]} {m[2]}", lambda m: f"{m[1]} \\[{m[2]}\\]"
    ),
    "heading-bold": _on(
        _TASK_HEAD, lambda m: f"**{m[2]}**", lambda m: f"{m[1]} **{m[2]}**", lambda m: f"__{m[2]}__"
    ),
    "heading-emoji": _on(_TASK_HEAD, lambda m: f"{m[1]} 🔧 {m[2]}", lambda m: f"🔧 {m[2]}"),
    "heading-plain": _on(_TASK_HEAD, lambda m: m[2], lambda m: f"{m[2]}:"),
    "heading-numbered": _on(
        _TASK_HEAD, lambda m: f"{m[1]} 3) {m[2]}", lambda m: f"3. {m[2]}", lambda m: f"- {m[2]}"
    ),
    "heading-setext": _on(_TASK_HEAD, lambda m: f"{m[2]}\n------", lambda m: f"{m[2]}\n======"),
    "heading-other-level": _on(_TASK_HEAD, lambda m: f"{m[1]}# {m[2]}", lambda m: f"# {m[2]}"),
    "heading-checkbox": _on(_TASK_HEAD, lambda m: f"{m[1]} [ ] {m[2]}", lambda m: f"- [ ] {m[2]}"),
    "heading-after-rule": _then(
        _insert_before(_TASK_HEAD, "---", "***\n"), _on(_TASK_HEAD, lambda m: f"{m[1]}{m[2]}")
    ),
    "heading-phantom": _insert_before(
        _TASK_HEAD,
        "## Task Graph",
        "### Task ID Specification",
        "## Task Overview\n",
        "### Task Breakdown and Dependencies",
    ),
    "rule-before-task": _insert_before(_TASK_HEAD, "---\n", "***", "___\n\n"),
    "id-equals": _label(_TASK_ID, "{0}**{1}** = {2}", "{0}**{1}**={2}"),
    "id-quoted": _label(_TASK_ID, "> **{1}:** {2}", ">**{1}:** {2}"),
    "id-dash": _label(_TASK_ID, "{0}**{1}** – {2}", "{0}**{1}** -> {2}"),
    "id-html": _label(_TASK_ID, "<b>{1}:</b> {2}", "<strong>{1}</strong>: {2}"),
    "id-after-rule": _then(
        _insert_before(re.compile(r"\*\*Task ID:\*\*"), "---"),
        _label(_TASK_ID, "> **{1}:** {2}", "**{1}** = {2}"),
    ),
    "label-no-break-space": _label(
        _ALL_LABELS, "{0}**{1}:**\u00a0{2}", "\u00a0**{1}:** {2}", "{0}**{1}\u00a0:** {2}"
    ),
    "label-zero-width": _label(
        _ALL_LABELS,
        "\u200b{0}**{1}:** {2}",
        "{0}**\u200b{1}:** {2}",
        "{0}**{1}\u200b:** {2}\u200b",
        "{0}**{1}:** \u2060{2}",
    ),
    "label-full-width": _label(
        _ALL_LABELS, "{0}**{1}：** {2}", "{0}**{1}**：{2}", "{0}＊＊{1}:＊＊ {2}"
    ),
    "label-other-colon": lambda lines, rng: _label(
        _ALL_LABELS, f"{{0}}**{{1}}{(sign := rng.choice(_COLONS))}** {{2}}", f"{{1}}{sign} {{2}}"
    )(lines, rng),
    "label-entity": _label(_ALL_LABELS, "**{1}&#58;** {2}", "&nbsp;**{1}:** {2}"),
    "label-other-sign": _label(_ALL_LABELS, "**{1}?** {2}", "**{1}…** {2}", "{1} ｡ {2}"),
    "label-collapsed": _label(
        _ALL_LABELS, "<details><summary>{1}</summary>{2}</details>", "<dt>{1}</dt><dd>{2}</dd>"
    ),
    "rule-before-value": _label(
        _ALL_LABELS, "{0}**{1}:**\n---\n{2}", "**{1}:**\n\n* * *\n{2}", "{1}\n----\n{2}"
    ),
    "label-quoted": _label(_ALL_LABELS, "> {0}**{1}:** {2}", ">{0}**{1}:** {2}"),
    "label-indented": _label(
        _ALL_LABELS, "    {0}**{1}:** {2}", "\t{0}**{1}:** {2}", "  {0}**{1}:** {2}"
    ),
    "label-html": _label(
        _ALL_LABELS, "<b>{1}:</b> {2}", "<strong>{1}:</strong> {2}", "<u>{1}</u>: {2}"
    ),
    "label-code": _label(_ALL_LABELS, "`{1}:` {2}", "`{1}`: {2}"),
    "label-emoji": _label(_ALL_LABELS, "🔗 **{1}:** {2}", "- 🔗 **{1}:** {2}", "✅ {1}: {2}"),
    "label-plain": _label(_ALL_LABELS, "{1}: {2}", "{0}{1}: {2}", "- {1}: {2}", "{1} : {2}"),
    "label-other-marks": _label(
        _ALL_LABELS,
        "– **{1}:** {2}",
        "• **{1}:** {2}",
        "a) **{1}:** {2}",
        "· {1}: {2}",
        "→ **{1}:** {2}",
    ),
    "label-brackets": _label(_ALL_LABELS, "[{1}]: {2}", "[{1}] {2}", "({1}) {2}", "【{1}】{2}"),
    "label-italic": _label(
        _ALL_LABELS, "*{1}:* {2}", "_{1}:_ {2}", "***{1}:*** {2}", "__{1}__: {2}"
    ),
    "label-upper": _label(_ALL_LABELS, "{0}**{1}:** {2}", "**[{1}]:** {2}"),
    "label-heading": _label(_ALL_LABELS, "#### {1}\n{2}", "#### {1}: {2}", "####{1}\n{2}"),
    "label-table": _label(_ALL_LABELS, "| **{1}** | {2} |", "| {1} | {2} |"),
    "label-broken": _label(
        _ALL_LABELS, "**{1}:\n** {2}", "**{1}\n:** {2}", "**{1}: {2}", "*{1}:** {2}"
    ),
    "prompt-untagged": _untag,
    "prompt-fenced": _fence_prompt,
    "dependencies-renamed": _label(
        _DEPENDENCIES,
        "{0}**Blocked By:** {2}",
        "{0}**Needs:** {2}",
        "{0}**Prerequisites:** {2}",
        "{0}**Must follow:** {2}",
        "{0}**Upstream:** {2}",
        "{0}**Predecessors:** {2}",
    ),
    "dependencies-renamed-untagged": _then(
        _untag,
        _label(
            _DEPENDENCIES,
            "{0}**Blocked By:** {2}",
            "{0}**Needs:** {2}",
            "Prerequisites: {2}",
            "Must follow: {2}",
        ),
    ),
    "dependencies-hidden-untagged": _then(
        _untag,
        _label(
            _DEPENDENCIES,
            "\u200b**{1}:** {2}",
            "<b>{1}:</b> {2}",
            "    **{1}:** {2}",
            "> {1}: {2}",
            "{1}: {2}",
            "- {1}: {2}",
        ),
    ),
    "dependencies-plain-fenced": _then(
        _fence_prompt, _label(_DEPENDENCIES, "- {1}: {2}", "{1}: {2}", "* {1} - {2}")
    ),
    "dependencies-full-width": _label(
        _DEPENDENCIES,
        "**Dependencies：** {2}，",
        "**Dependencies:** ［{2}］",
        "**Dependencies:** （{2}）",
    ),
    "dependencies-form": _label(
        _DEPENDENCIES,
        "**Dependencies:**\n- {2}",
        "**Dependencies:**\n  1. {2}",
        "**Dependencies:**\n\n{2}",
        "**Dependencies:** → {2}",
        "**Dependencies:** `{2}`",
        "**Dependencies:** None (except {2})",
        "**Dependencies:** none; {2} (first)",
    ),
    "criteria-marks": _on(
        _ITEM,
        *_list_marks("–—·◦✓▪‣➢"),
        lambda m: f"{m[1]}a) {m[2] or ''}{m[3]}",
        lambda m: f"{m[1]}-{m[2] or ''}{m[3]}",
        lambda m: f"{m[1]}(1) {m[2] or ''}{m[3]}",
    ),
    "criteria-all-marks": lambda lines, rng: _all_items(lines, rng.choice("–—·◦✓▪*+")),
    "criteria-boxes": _on(
        _ITEM,
        lambda m: f"{m[1]}-{m[2] or '[ ] '}{m[3]}",
        lambda m: f"{m[1]}- [✓] {m[3]}",
        lambda m: f"{m[1]}- ☐ {m[3]}",
        lambda m: f"{m[1]}- ［ ］{m[3]}",
        lambda m: f"{m[1]}[ ] {m[3]}",
    ),
    "criteria-points": _on(
        _POINTS,
        lambda m: f"{m[1]}（{m[2]} pts）{m[3]}",
        lambda m: f"{m[1]}({m[2]}\u00a0pts){m[3]}",
        lambda m: f"{m[1]}[{m[2]} points]{m[3]}",
        lambda m: f"{m[1]}{m[2]} pts:{m[3]}",
        lambda m: f"{m[1]}**({m[2]} pts)**{m[3]}",
        lambda m: f"{m[1]}({_full_width(m[2])} pts){m[3]}",
        lambda m: f"{m[1]}({m[2]} pts)({m[2]} pts){m[3]}",
        lambda m: f"{m[1]}({m[2]} pts) →{m[3]}",
        lambda m: f"{m[1]}(weight: {m[2]}){m[3]}",
        lambda m: f"{m[1]}{{{m[2]} pts}}{m[3]}",
    ),
    "criteria-joined": _on(
        _POINTS, lambda m: f"  ({m[2]} pts){m[3]}", lambda m: f"({m[2]} pts){m[3]}"
    ),
    "criteria-behind-rule": _insert_before(_POINTS, "---", "***\n"),
    "criteria-without-label": lambda lines, rng: _replace_one(
        lines, rng, lambda one: _CRITERIA_LABEL.search(one) is not None, lambda _: ""
    ),
    "criteria-two-labels": _on(
        _POINTS, lambda m: f"{m[0]}\n\n**Success Criteria:**\n- {m[3].strip()}"
    ),
    "criteria-first-unpointed": _on(
        re.compile(r"^(\s*\*\*.*criteria.*:\*\*)$", re.IGNORECASE),
        lambda m: f"**Acceptance Criteria:**\n- extra claim\n\n{m[1]}",
    ),
    "line-no-break-spaces": _on(_ANY, lambda m: m[0].replace(" ", "\u00a0")),
    "line-quoted": _on(_ANY, lambda m: f"> {m[0]}"),
    "line-full-width": _on(_ANY, lambda m: _punctuation(m[0])),
    "line-trailing": _on(
        _ANY, lambda m: f"{m[0]}\\", lambda m: f"{m[0]}<br>", lambda m: f"{m[0]}  "
    ),
    "carriage-returns": lambda lines, rng: [f"{line}\r" for line in lines],
    "line-separators": _on(
        _ANY, lambda m: f"{m[0]}\u2028", lambda m: f"\u2028{m[0]}", lambda m: f"{m[0]}\x0b"
    ),
    "comment": _on(_ANY, lambda m: f"<!-- note -->\n{m[0]}", lambda m: f"{m[0]}\n<!--\nnote\n-->"),
    "comment-before-text": _on(_ANY, lambda m: f"<!---->{m[0]}", lambda m: f"<!-- a\n-->{m[0]}"),
    "blank-lines": _on(_ANY, lambda m: f"\n\n{m[0]}\n\n"),
}


def _all_items(lines: list[str], sign: str) -> list[str]:
    free = set(_free(lines))
    return [
        _ITEM.sub(lambda m: f"{m[1]}{sign} {m[2] or ''}{m[3]}", one) if n in free else one
        for n, one in enumerate(lines)
    ]


def mutate(text: str, kind: str, rng: random.Random) -> str:
    """Return the text with one mutation of a kind."""
    return "\n".join(KINDS[kind](text.split("\n"), rng))
