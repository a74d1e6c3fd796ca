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


def test_an_hour_of_waiting_is_over_at_once():
    async def hour(loop: VirtualLoop) -> float:
        return await passed(asyncio.gather(*(asyncio.sleep(n) for n in (60, 3600, 1800))))

    assert virtual_time.run(hour) == 3600


def test_the_clock_stands_still_while_a_thread_or_a_program_is_at_work():
    async def beside_a_timer(loop: VirtualLoop) -> float:
        timer = asyncio.ensure_future(asyncio.sleep(3600))
        took = await passed(asyncio.to_thread(time.sleep, 0.01))
        program = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "pass")
        took += await passed(program.wait())
        timer.cancel()
        return took

    assert virtual_time.run(beside_a_timer) == 0


def test_the_clock_stands_still_while_a_store_it_knows_writes(tmp_path):
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


def test_timeouts_strike_in_their_order():
    async def limited(loop: VirtualLoop) -> float:
        began = loop.time()
        try:
            async with asyncio.timeout(30):
                await asyncio.sleep(60)
        except TimeoutError:
            return loop.time() - began
        return -1

    assert virtual_time.run(limited) == 30


def test_the_clock_stands_still_until_a_program_that_was_told_something_has_answered():
    async def told(loop: VirtualLoop) -> float:
        timer = asyncio.ensure_future(asyncio.sleep(3600))
        words = "import sys, time; sys.stdin.read(); sys.stdin.close(); time.sleep(0.05); print('heard')"
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", words, stdin=pipe, stdout=pipe
        )
        took = await passed(program.communicate(b"hear this"))
        timer.cancel()
        return took

    assert virtual_time.run(told) == 0


def test_the_clock_stands_still_while_somebody_watches_a_pipe():
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
