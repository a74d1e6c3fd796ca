"""File with answers: a YAML map of question ids."""

from pathlib import Path

from mimir.domain.located_tree import LocatedValue, LocatedValueError, parse_yaml
from mimir.errors import Location, PlanError, UsageError
from mimir.orchestrator.questions.answering import GivenAnswer

MAX_BYTES = 100_000


def read_answers(path: Path, name: str) -> list[tuple[str, GivenAnswer]]:
    """Return the answers of a file: a value for each question id, or a map of its fields.

    Raises:
        PlanError: It is not such a map; nothing was answered.
        UsageError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            # A device or a huge file must not fill the memory.
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read: {error}.") from None
    if len(content) > MAX_BYTES:
        raise UsageError(
            f"{name} is longer than {MAX_BYTES:,} bytes. Nothing was answered.",
            next_step="Split it into several files.",
        )
    try:
        tree = parse_yaml(text)
        if tree.kind != "map":
            raise LocatedValueError("It is no map of question ids.", tree.place)
        return [(id, _answer(id, value)) for id, value in tree.keys.items()]
    except LocatedValueError as error:
        place = Location(file=name, line=error.place.line, column=error.place.column)
        raise PlanError(
            f"{error} Nothing was answered.",
            at=place,
            code="answers",
            next_step="Write one line for each question: q-1f2e3d: eu-west",
        ) from None


def _answer(id: str, value: LocatedValue) -> GivenAnswer:
    if value.is_scalar:
        return GivenAnswer(text=value.text)
    if value.kind == "list":
        return GivenAnswer(text=",".join(_text(id, one) for one in value.items))
    if value.kind == "map":
        fields = {
            name: ",".join(_text(id, item) for item in one.items)
            if one.kind == "list"
            else _text(id, one)
            for name, one in value.keys.items()
        }
        return GivenAnswer(fields=fields)
    raise LocatedValueError(f"The answer to {id} is empty.", value.place)


def _text(id: str, value: LocatedValue) -> str:
    if not value.is_scalar:
        raise LocatedValueError(f"The answer to {id} is nested too deep.", value.place)
    return value.text
