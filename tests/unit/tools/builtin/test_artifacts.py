"""Only artifacts granted to this attempt can be read, page by page."""

from mimir.tools.builtin.artifacts import ArtifactTools
from mimir.tools.secrets import Redactor
from tests.support.fake_tools import CONTEXT, FakeArtifacts, wish

ID = "r1/task-0/1/answer"
OTHER = "r1/task-9/1/answer"


def build(text: str = "0123456789" * 5, max_chars: int = 20) -> tuple[ArtifactTools, FakeArtifacts]:
    artifacts = FakeArtifacts({ID: text, OTHER: "not yours"})
    tools = ArtifactTools(artifacts, {ID}, redact=Redactor(["s3cret-value"]), max_chars=max_chars)
    return tools, artifacts


async def test_a_text_is_read_page_by_page_without_loss():
    tools, _ = build()
    seen = ""
    offset: int | None = 0
    while offset is not None:
        result = await tools.call(wish("read_artifact", {"id": ID, "offset": offset}), CONTEXT)
        header, part, *more = result.text.split("\n")
        assert header == f"{ID}, characters {offset} to {offset + len(part)} of 50"
        seen += part
        offset = int(more[0].removesuffix("]").rsplit("=", 1)[1]) if more else None
    assert seen == "0123456789" * 5


async def test_page_of_an_artifact_names_the_next_offset():
    tools, _ = build()
    result = await tools.call(wish("read_artifact", {"id": ID}), CONTEXT)
    assert result.text == (
        f"{ID}, characters 0 to 20 of 50\n01234567890123456789\n[not the end: read on with offset=20]"
    )


async def test_artifact_without_a_grant_is_refused_before_a_read():
    tools, artifacts = build()
    texts: list[str] = []
    for id in (OTHER, "nowhere"):
        result = await tools.call(wish("read_artifact", {"id": id}), CONTEXT)
        assert result.is_error
        texts.append(result.text.replace(id, "ID"))
    assert (
        texts[0]
        == texts[1]
        == (f"Error: There is no artifact 'ID' that you may read. You may read: {ID}.")
    )
    assert artifacts.asked == []


async def test_artifact_offset_past_the_end_is_refused():
    tools, _ = build()
    result = await tools.call(wish("read_artifact", {"id": ID, "offset": 50}), CONTEXT)
    assert result.text == (
        "Error: The artifact has 50 characters; offset 50 is past its end. Give a smaller offset."
    )


async def test_an_empty_text_is_no_error():
    tools, _ = build("")
    result = await tools.call(wish("read_artifact", {"id": ID}), CONTEXT)
    assert (result.text, result.is_error) == (f"{ID}, characters 0 to 0 of 0\n", False)


async def test_no_half_of_a_secret_is_left_at_the_edge_of_a_page():
    tools, _ = build("x" * 15 + "s3cret-value" + "y" * 20)
    pages = [
        (await tools.call(wish("read_artifact", {"id": ID, "offset": o}), CONTEXT)).text
        for o in (0, 20, 40)
    ]
    assert "s3c" not in "".join(pages)
    assert "value" not in "".join(pages)
