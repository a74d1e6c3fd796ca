"""`mimir doctor` on a machine without a project, and with a model that answers."""

from tests.support.cli_runner import Desk
from tests.support.script_server import PlayServer


def test_doctor_creates_no_file(desk: Desk):
    desk.write("pyproject.toml", "[project]\nname = 'x'\n")
    desk.write("tests/test_x.py", "def test_x(): pass\n")
    before = desk.files(work=True)
    said = desk.type("doctor", "--json")
    assert desk.files(work=True) == before
    assert not (desk.project / ".mimir").exists()
    checks = {one["what"]: one for one in said.json["checks"]}
    assert {"store", "git", "sandbox", "python", "disk", "programs", "model"} <= checks.keys()
    assert "not created yet" in checks["store"]["detail"]
    assert checks["test command"]["detail"] == "python -m pytest -q"
    assert said.code == 0


def test_doctor_sends_one_small_model_call_and_names_the_origin_of_the_key(desk: Desk):
    answers = {"default": [{"text": "ready", "repeat": "forever"}]}
    with PlayServer(answers) as server:
        quiet = desk.ask(server).type("doctor")
        assert len(server.requests) == 0
        asked = desk.type("doctor", "--ask", "--paste")
        assert [one.body["max_tokens"] for one in server.requests] == [16]
    assert "not asked: mimir doctor --ask" in quiet.out
    assert "key: from the variable OPENAI_API_KEY" in asked.out
    assert "answered in" in asked.out
    assert asked.out.startswith("```")


def test_a_dead_endpoint_is_named(desk: Desk):
    desk.environ(OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="sk-test-0123456789")
    said = desk.type("doctor", "--ask", "--paste")
    assert "the connection is refused" in said.out
    assert "sk-test" not in said.out
