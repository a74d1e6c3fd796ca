import asyncio
import json
from dataclasses import asdict
from typing import ClassVar

import httpx2
import pytest

from mimir.planning.lint.plan_check import check
from mimir.qc.judgement.verdict_parser import parse
from mimir_bench.engine import benchmark, workload
from mimir_bench.engine.control_protocol import ServerControl
from mimir_bench.engine.measured_process import SubjectCost, SubjectOrder, read_order
from mimir_bench.engine.model_server import ModelServer
from mimir_bench.engine.peers import bare_loop, shared_task
from mimir_bench.engine.workload import Workload
from mimir_bench.figures import RATIO, Figures

TOOLS = ("read_file", "write_file", "list_files")


@pytest.fixture
async def url():
    server = await asyncio.start_server(ModelServer().serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@pytest.mark.parametrize("work", ["answers", "files"])
@pytest.mark.parametrize("graph", ["layered", "chain", "fan-in"])
def test_a_workload_is_a_plan_without_errors(graph: str, work: str):
    load = Workload(graph=graph, tasks=30, work=work)  # type: ignore[arg-type]
    plan = workload.plan(load)

    assert len(plan.tasks) == workload.count(load)
    assert [f for f in check(plan, tools=TOOLS) if f.severity == "error"] == []


def test_a_hundred_tasks_make_four_hundred_and_sixty_calls():
    assert workload.calls(Workload(tasks=100)) == 460


def test_scripted_verdict_quotes_the_answer():
    load = Workload(tasks=3)
    criteria = workload.plan(load).tasks[2].criteria
    quote = json.loads(workload.verdict(load, 2))["criteria"][0]["quote"]

    assert quote in workload.closing_answer(load, 2)
    assert parse(workload.verdict(load, 2), criteria).score == 100


@pytest.mark.parametrize("over", [bare_loop.over_httpx2, bare_loop.over_sdk])
async def test_a_bare_loop_makes_every_call_of_the_workload_and_one_for_the_report(
    over, url: str, tmp_path
):
    load = Workload(tasks=12, work="files")
    for name, text in workload.project().items():
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    control = ServerControl(url)
    await control.order(load, 0.0)

    async with over(f"{url}/v1") as post:
        await bare_loop.work(post, load, tmp_path, 4)

    meter = await control.meter()
    assert meter["calls"] == workload.calls(load) + 1
    assert (tmp_path / workload.path(11)).read_text() == workload.content(11)
    assert meter["answer_bytes"] < meter["message_bytes"]


async def test_peer_starts_no_task_before_its_dependencies():
    load, done = Workload(graph="layered", tasks=30), []

    async def one(at: int) -> None:
        assert set(workload.needs(load, at)) <= set(done)
        await asyncio.sleep(0)
        done.append(at)

    await shared_task.run(load, 10, one)
    assert sorted(done) == list(range(30))


async def test_server_streams_on_request(url: str):
    await ServerControl(url).order(Workload(tasks=1), 0.0)
    body = {"stream": True, "messages": [{"role": "user", "content": "Do it."}]}
    async with httpx2.AsyncClient(trust_env=False) as client:
        response = await client.post(
            f"{url}/v1/chat/completions", json=body, headers={"x-mimir-lane": "r/t00000/1/worker"}
        )

    rows = response.text.strip().split("\n\n")
    assert rows[-1] == "data: [DONE]"
    delta = json.loads(rows[0].removeprefix("data: "))["choices"][0]["delta"]
    assert delta["tool_calls"][0]["function"]["name"] == "read_file"


def test_order_is_passed_to_the_other_process_unchanged():
    order = SubjectOrder(
        subject="httpx2", load=Workload(graph="chain", answer_bytes=1000), url="http://x"
    )
    assert read_order(json.dumps(asdict(order))) == order


async def test_growth_is_of_tasks_that_were_measured_one_after_the_other():
    def took(seconds: float, load: Workload) -> SubjectCost:
        peak = 100_000_000 + load.tasks * 5_000
        return SubjectCost(
            cpu_seconds=seconds, child_seconds=0, wall_seconds=0, peak_bytes=peak, meter={}
        )

    class Slowing(benchmark._MeasurementServices):
        asked: ClassVar[list[int]] = []

        async def take(self, name, load, *, latency=0.0, slots=10):
            self.asked.append(load.tasks)
            return took(load.tasks * 0.02, load)  # twice the earlier time

    desk = Slowing(url="", say=print, scope=benchmark.SCOPES["usual"])
    figures = Figures(name="engine", seeds="", tolerance=0.25, goals=benchmark.GOALS)
    await benchmark._measure_growth(desk, figures, took(1.0, Workload(tasks=100)))

    assert desk.asked == [1000, 100, 1000]
    assert figures.rows[0]["figure"] == benchmark.GROWTH
    assert figures.rows[0][RATIO] == 1
