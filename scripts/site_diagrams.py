"""Hook of the site of docs/: state diagrams become SVG pictures, without a script of another server.

GitHub draws Mermaid itself. Here the states are a column; a transition is an arrow on its right side if it goes down, on its left side if
it goes up. The colour names the actor.
"""

import re
from html import escape

_BLOCK = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MOVE = re.compile(r"^\s*(\S+) --> (\S+?)(?:: (.*))?$", re.MULTILINE)
_EDGE = "[*]"
_ROW, _TOP, _MIDDLE, _HALF = 44, 24, 330, 90
"""Pixels: distance of states, first state, centre of the column, half of a state's width."""
_COLOURS = ("#4477aa", "#cc6677", "#228833", "#aa7711", "#aa3377", "#009999", "#777777", "#cc3311")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page with each state diagram as a picture."""
    return _BLOCK.sub(lambda found: draw(found[1]), markdown)


def draw(diagram: str) -> str:
    """Return a state diagram as SVG in one line, as markdown needs it."""
    moves = [(at, to, by or "") for at, to, by in _MOVE.findall(diagram)]
    states = list(dict.fromkeys(one for at, to, _ in moves for one in (at, to) if one != _EDGE))
    starts = {to for at, to, _ in moves if at == _EDGE}
    ends = {at for at, to, _ in moves if to == _EDGE}
    states.sort(key=lambda state: state in ends)
    actors = list(dict.fromkeys(by for at, to, by in moves if by))
    colours = dict(zip(actors, _COLOURS * len(actors), strict=False))
    place = {state: _TOP + _ROW * number for number, state in enumerate(states)}
    parts = [
        _arrow(
            place[at], place[to], colours.get(by, "currentColor"), f"{at} → {to}: {by}".rstrip(": ")
        )
        for at, to, by in moves
        if _EDGE not in (at, to)
    ]
    parts += [_state(one, y, one in starts, one in ends) for one, y in place.items()]
    bottom = _TOP + _ROW * len(states)
    for number, (actor, colour) in enumerate(colours.items()):
        y = bottom + 20 * number
        parts.append(f'<rect x="20" y="{y - 10}" width="24" height="4" fill="{colour}"/>')
        parts.append(f'<text x="52" y="{y - 4}">{escape(actor)}</text>')
    height = bottom + 20 * len(colours)
    marks = "".join(_head(colour) for colour in ("currentColor", *colours.values()))
    return (
        f'<svg viewBox="0 0 660 {height}" role="img" style="max-width:660px;font:13px sans-serif" '
        f'fill="currentColor"><title>States and transitions</title><defs>{marks}</defs>{"".join(parts)}</svg>'
    )


def _name(colour: str) -> str:
    return f"head-{colour.lstrip('#')}"


def _head(colour: str) -> str:
    return (
        f'<marker id="{_name(colour)}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
    )


def _arrow(y: int, to: int, colour: str, title: str) -> str:
    """Return a transition: down on the right side, up on the left one; the longer, the wider."""
    side = 1 if to > y else -1
    x = _MIDDLE + side * _HALF
    bend = x + side * (14 + abs(to - y) // 3)
    path = f"M{x} {y + side * 5}C{bend} {y + side * 5} {bend} {to - side * 5} {x} {to - side * 5}"
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6" '
        f'marker-end="url(#{_name(colour)})"><title>{escape(title)}</title></path>'
    )


def _state(name: str, y: int, is_start: bool, is_end: bool) -> str:
    stroke = 3 if is_end else 1
    text = f"{'▸ ' if is_start else ''}{name}"
    return (
        f'<rect x="{_MIDDLE - _HALF}" y="{y - 14}" width="{2 * _HALF}" height="28" rx="8" fill="none" '
        f'stroke="currentColor" stroke-width="{stroke}"/>'
        f'<text x="{_MIDDLE}" y="{y + 5}" text-anchor="middle">{escape(text)}</text>'
    )
