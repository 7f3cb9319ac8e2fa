"""litellm: loaded when it is needed, kept out of the way, and gone when it is closed."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import warnings

from sidejudge.integrations.provider.library import LiteLLM


def test_nothing_loads_it_by_being_imported():
    code = (
        "import sys, threading, sidejudge.integrations.judge.client, sidejudge.monitor.evaluate.judge.judge_backend; "
        "assert not {'litellm', 'openai', 'aiohttp', 'httpx'} & set(sys.modules); assert threading.active_count() == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_it_works_in_its_own_thread_and_ends_with_it():
    library, before = LiteLLM(), set(threading.enumerate())

    def own() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "sidejudge-provider" and each not in before]

    async def where(litellm):
        assert litellm.__name__ == "litellm"
        asyncio.get_running_loop().create_task(asyncio.sleep(3600))  # what a library leaves behind
        return threading.current_thread().name

    assert await asyncio.gather(library.run(where), library.run(where)) == ["sidejudge-provider"] * 2
    assert len(own()) == 1
    await library.close()
    await library.close()
    assert not own()
    assert await library.run(where) == "sidejudge-provider"  # it may be started again
    await library.close()


async def test_who_gives_up_waiting_ends_the_work_too():
    library = LiteLLM()
    ended = threading.Event()

    async def waits(_litellm):
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    await library.start()
    task = asyncio.create_task(library.run(waits))
    await asyncio.sleep(0.05)
    task.cancel()
    assert await asyncio.to_thread(ended.wait, 10)
    await library.close()


async def test_closing_what_was_never_started_does_nothing():
    await LiteLLM().close()


async def test_a_call_that_is_given_up_while_it_is_being_made_leaves_no_coroutine_unawaited():
    library = LiteLLM()
    began, go_on, made = threading.Event(), threading.Event(), []

    async def call():
        return "said"

    def making():  # as litellm does: the coroutine of a call comes out of a thread
        began.set()
        go_on.wait(10)
        made.append(True)
        return call()

    async def work(_litellm):
        return await (await asyncio.get_running_loop().run_in_executor(None, making))

    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        task = asyncio.create_task(library.run(work))
        assert await asyncio.to_thread(began.wait, 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        assert await library.run(work) == "said", "what is awaited works as ever"
        await library.close()
        gc.collect()
    assert len(made) == 2
    assert [str(one.message) for one in reported if "never awaited" in str(one.message)] == []
