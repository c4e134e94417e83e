"""The virtual loop: time that jumps, order from a seed, and programs that cannot go on."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pytest

from moorage.sim.loop import Deadlock, Livelock, OutOfTime, SimulationError, VirtualLoop, run


async def interleaving(workers: int = 6, rounds: int = 3) -> list[int]:
    order: list[int] = []

    async def work(number: int) -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
            order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(workers):
            group.create_task(work(number))
    return order


class TestOrder:
    def test_without_a_seed_callbacks_run_in_order_of_arrival(self):
        assert run(interleaving(3, 2)) == [0, 1, 2, 0, 1, 2]

    def test_timers_of_one_instant_fire_in_order_of_arrival_without_a_seed(self):
        async def main() -> list[int]:
            fired: list[int] = []
            loop = asyncio.get_running_loop()
            for number in range(50):
                loop.call_at(5.0, fired.append, number)
            await asyncio.sleep(6)
            return fired

        assert run(main()) == list(range(50))

    @pytest.mark.parametrize("seed", [0, 1, 2**70, "a text"], ids=["zero", "small", "huge", "text"])
    def test_the_same_seed_gives_the_same_order(self, seed):
        assert run(interleaving(), seed=seed) == run(interleaving(), seed=seed)

    def test_seeds_give_different_orders(self):
        assert len({tuple(run(interleaving(), seed=seed)) for seed in range(20)}) > 15

    def test_a_seed_only_permutes(self):
        assert sorted(run(interleaving(), seed=7)) == sorted(run(interleaving()))

    def test_timers_never_fire_early_whatever_the_seed(self):
        async def main() -> list[float]:
            times: list[float] = []

            async def sleeper(seconds: float) -> None:
                await asyncio.sleep(seconds)
                times.append(asyncio.get_running_loop().time())

            await asyncio.gather(*(sleeper(s) for s in (3.0, 1.0, 2.0)))
            return times

        assert all(run(main(), seed=seed) == [1.0, 2.0, 3.0] for seed in range(10))

    def test_the_order_does_not_depend_on_the_hash_seed_or_on_addresses(self):
        program = (
            "import asyncio\n"
            "from moorage.sim.loop import run\n"
            "order = []\n"
            "async def wait(name):\n"
            "    try: await asyncio.sleep(9)\n"
            "    except asyncio.CancelledError: order.append(name)\n"
            "async def main():\n"
            "    tasks = [asyncio.create_task(wait(name)) for name in 'abcdefgh']\n"
            "    done, pending = await asyncio.wait(tasks, timeout=1)\n"
            "    for task in pending: task.cancel()\n"
            "run(main(), seed=3)\n"
            "print(''.join(order))"
        )
        answers = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={"PYTHONPATH": "src", "PYTHONHASHSEED": hash_seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for hash_seed in ("0", "1", "4242")
        }
        assert len(answers) == 1
        assert sorted(answers.pop().strip()) == list("abcdefgh")


class TestTime:
    def test_hours_pass_in_milliseconds(self):
        async def main() -> float:
            for _ in range(100):
                await asyncio.sleep(3600)
            return asyncio.get_running_loop().time()

        began = time.perf_counter()
        assert run(main()) == 360_000
        assert time.perf_counter() - began < 1

    def test_timers_are_exact_far_in_the_future(self):
        async def main() -> float:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(1e9)
            before = loop.time()
            await asyncio.sleep(0.25)
            return loop.time() - before

        assert run(main()) == 0.25

    def test_time_stands_still_while_something_is_ready(self):
        async def main() -> float:
            for _ in range(1000):
                await asyncio.sleep(0)
            return asyncio.get_running_loop().time()

        assert run(main()) == 0

    def test_cancelled_timers_do_not_move_time(self):
        async def main() -> float:
            loop = asyncio.get_running_loop()
            for seconds in range(1, 500):
                loop.call_later(seconds, print).cancel()
            await asyncio.sleep(1000)
            return loop.time()

        assert run(main()) == 1000

    def test_a_timeout_of_asyncio_works_in_virtual_time(self):
        async def main() -> float:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(30):
                    await asyncio.sleep(60)
            return asyncio.get_running_loop().time()

        assert run(main()) == 30

    def test_the_time_limit_ends_a_run(self):
        with pytest.raises(OutOfTime, match=r"before virtual second 10:\n  task-1: .*sleep"):
            run(asyncio.sleep(11), timeout_virtual=10)
        assert run(asyncio.sleep(10, "done"), timeout_virtual=10) == "done"


class TestStuck:
    def test_a_deadlock_names_the_waiting_tasks_and_where_they_wait(self):
        async def waits_for_ever() -> None:
            await asyncio.Event().wait()

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(waits_for_ever(), name="the culprit")

        with pytest.raises(Deadlock) as caught:
            run(main())
        assert "the culprit" in str(caught.value)
        assert "waits_for_ever at" in str(caught.value)
        assert "test_loop.py" in str(caught.value)

    def test_a_program_that_spins_is_stopped(self):
        async def spin() -> None:
            while True:
                await asyncio.sleep(0)

        loop = VirtualLoop(spin_limit=1000)
        task = loop.create_task(spin())
        with pytest.raises(Livelock, match="1000 callbacks ran at virtual second 0"):
            loop.run_until_complete(task)
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    @pytest.mark.parametrize(
        "attempt",
        [
            pytest.param(lambda loop: loop.run_in_executor(None, print), id="executor"),
            pytest.param(lambda loop: asyncio.to_thread(print), id="thread"),
            pytest.param(lambda loop: loop.create_connection(None, "127.0.0.1", 1), id="connection"),
            pytest.param(lambda loop: loop.create_server(None, "127.0.0.1", 1), id="server"),
            pytest.param(lambda loop: loop.getaddrinfo("localhost", 1), id="name lookup"),
            pytest.param(lambda loop: loop.sock_connect(None, ("127.0.0.1", 1)), id="socket"),
            pytest.param(lambda loop: asyncio.open_connection("127.0.0.1", 1), id="stream"),
            pytest.param(lambda loop: asyncio.open_unix_connection("socket"), id="unix socket"),
            pytest.param(lambda loop: asyncio.create_subprocess_exec("true"), id="process"),
        ],
    )
    def test_the_real_world_is_refused(self, attempt):
        async def main() -> None:
            with pytest.raises(SimulationError, match=r"is not available in virtual time.* override it"):
                await attempt(asyncio.get_running_loop())

        run(main())


class TestEnd:
    def test_leftover_tasks_are_cancelled_oldest_first_and_may_clean_up(self):
        cleaned: list[str] = []

        async def leftover(name: str) -> None:
            try:
                await asyncio.sleep(1e6)
            finally:
                await asyncio.sleep(5)
                cleaned.append(name)

        async def main() -> None:
            for name in "abc":
                asyncio.get_running_loop().create_task(leftover(name))
            await asyncio.sleep(1)

        run(main(), timeout_virtual=2)
        assert cleaned == ["a", "b", "c"]

    def test_leftovers_are_cancelled_after_a_failure_too(self):
        ended: list[str] = []

        async def leftover() -> None:
            try:
                await asyncio.sleep(1e6)
            finally:
                ended.append("cancelled")

        async def main() -> None:
            task = asyncio.create_task(leftover())
            await asyncio.sleep(1)
            raise LookupError(task.get_name())

        with pytest.raises(LookupError):
            run(main())
        assert ended == ["cancelled"]

    def test_abandoned_async_generators_are_closed(self):
        ended: list[str] = []

        async def numbers() -> AsyncIterator[int]:
            try:
                while True:
                    yield 1
            finally:
                ended.append("closed")

        async def main() -> None:
            source = numbers()
            await anext(source)

        run(main())
        gc.collect()
        assert ended == ["closed"]

    def test_a_failure_that_no_task_awaits_fails_the_run(self):
        async def main() -> None:
            asyncio.get_running_loop().call_soon(int, "no number")
            await asyncio.sleep(1)

        with pytest.raises(BaseExceptionGroup) as caught:
            run(main())
        assert [type(error) for error in caught.value.exceptions] == [ValueError]

    def test_nothing_stays_behind(self):
        async def main() -> str:
            asyncio.create_task(asyncio.sleep(99))  # noqa: RUF006 - left over on purpose
            return "done"

        assert run(main()) == "done"
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
