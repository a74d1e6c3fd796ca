import asyncio
import os
import sys
import time

from mimir.store.protocol import GraphStore
from mimir.store.sqlite.sqlite_store import SqliteStore
from mimir_bench import virtual_time
from mimir_bench.virtual_time import VirtualLoop, VirtualTimeStore
from tests.support.clock import FrozenClock


async def passed(job: object) -> float:
    clock = asyncio.get_running_loop()
    began = clock.time()
    await job  # type: ignore[misc]
    return clock.time() - began


def test_hour_of_waiting_passes_on_the_virtual_clock():
    async def hour(loop: VirtualLoop) -> float:
        return await passed(asyncio.gather(*(asyncio.sleep(n) for n in (60, 3600, 1800))))

    assert virtual_time.run(hour) == 3600


def test_virtual_clock_waits_for_a_thread_or_a_program():
    async def beside_a_timer(loop: VirtualLoop) -> float:
        timer = asyncio.ensure_future(asyncio.sleep(3600))
        took = await passed(asyncio.to_thread(time.sleep, 0.01))
        program = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "pass")
        took += await passed(program.wait())
        timer.cancel()
        return took

    assert virtual_time.run(beside_a_timer) == 0


def test_virtual_clock_waits_for_a_write_of_its_store(tmp_path):
    async def writing(loop: VirtualLoop) -> float:
        store: GraphStore = VirtualTimeStore(SqliteStore(tmp_path / "a.db", FrozenClock()), loop)
        await store.init()
        timer = asyncio.ensure_future(asyncio.sleep(3600))
        took = await passed(store.write(lambda ops: time.sleep(0.01)))
        took += await passed(store.read(lambda reads: time.sleep(0.01)))
        timer.cancel()
        await store.close()
        return took

    assert virtual_time.run(writing) == 0


def test_timeouts_apply_in_order():
    async def limited(loop: VirtualLoop) -> float:
        began = loop.time()
        try:
            async with asyncio.timeout(30):
                await asyncio.sleep(60)
        except TimeoutError:
            return loop.time() - began
        return -1

    assert virtual_time.run(limited) == 30


def test_virtual_clock_waits_for_the_answer_of_a_program():
    async def answered_program(loop: VirtualLoop) -> float:
        timer = asyncio.ensure_future(asyncio.sleep(3600))
        words = "import sys, time; sys.stdin.read(); sys.stdin.close(); time.sleep(0.05); print('heard')"
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", words, stdin=pipe, stdout=pipe
        )
        took = await passed(program.communicate(b"hear this"))
        timer.cancel()
        return took

    assert virtual_time.run(answered_program) == 0


def test_virtual_clock_waits_for_a_watched_pipe():
    async def watching(loop: VirtualLoop) -> float:
        timer = asyncio.ensure_future(asyncio.sleep(3600))
        there, here = os.pipe()
        heard = loop.create_future()
        loop.add_reader(there, lambda: heard.done() or heard.set_result(None))
        words = f"import os, time; time.sleep(0.05); os.write({here}, b'x')"
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", words, pass_fds=(here,)
        )
        took = await passed(heard)
        loop.remove_reader(there)
        took += await passed(program.wait())
        timer.cancel()
        os.close(there)
        os.close(here)
        return took

    assert virtual_time.run(watching) == 0
