"""Tokens that are rotated, expire, or cannot be renewed."""

import asyncio
from dataclasses import replace
from itertools import count

from moorage.client.credentials import EARLY_SECONDS, RELOAD_SECONDS, Bearer, Credentials, CredentialsError
from moorage.sim import loop
from moorage.sim.loop import EPOCH, VirtualClock

PLAIN = Credentials("https://server", "the test")


class Plugin:
    """Stands for a kubeconfig with an exec plugin: each run gives another token that lasts ten minutes."""

    def __init__(self, seconds: float = 600.0) -> None:
        self.runs = 0
        self.broken = False
        self._seconds = seconds
        self._numbers = count(1)

    async def load(self) -> Credentials:
        self.runs += 1
        await asyncio.sleep(1)
        if self.broken:
            raise CredentialsError("kubeconfig x: its exec plugin failed")
        expires = EPOCH + asyncio.get_running_loop().time() + self._seconds
        return replace(PLAIN, token=f"token-{next(self._numbers)}", expires=expires, reload=self.load)


def test_a_token_file_is_read_again_every_minute(tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")

    async def main():
        bearer = Bearer(replace(PLAIN, token_file=str(file)), VirtualClock())
        seen = [await bearer.token()]
        file.write_text("two\n")
        for _ in range(2):
            await asyncio.sleep(40)
            seen.append(await bearer.token())
        return seen

    assert loop.run(main()) == ["one", "one", "two"]


def test_a_token_file_that_vanishes_or_is_empty_leaves_the_last_token(tmp_path, caplog):
    file = tmp_path / "token"
    file.write_text("one")

    async def main():
        bearer = Bearer(replace(PLAIN, token_file=str(file)), VirtualClock())
        seen = [await bearer.token()]
        file.write_text("")
        await asyncio.sleep(61)
        seen.append(await bearer.token())
        file.unlink()
        await asyncio.sleep(61)
        seen.append(await bearer.token())
        assert not await bearer.refused("one"), "there is no other to try"
        return seen

    assert loop.run(main()) == ["one", "one", "one"]
    assert "using the last token" in caplog.text


def test_what_expires_is_renewed_before():
    async def main():
        plugin = Plugin()
        bearer = Bearer(await plugin.load(), VirtualClock())
        await asyncio.sleep(600 - EARLY_SECONDS - 1)
        before = await bearer.token()
        await asyncio.sleep(2)
        return before, await bearer.token(), plugin.runs

    assert loop.run(main()) == ("token-1", "token-2", 2)


def test_many_refused_requests_run_the_plugin_once():
    async def main():
        plugin = Plugin()
        bearer = Bearer(await plugin.load(), VirtualClock())
        again = await asyncio.gather(*(bearer.refused("token-1") for _ in range(20)))
        late = await bearer.refused("token-1")
        return all(again), late, plugin.runs

    assert loop.run(main()) == (True, True, 2)


def test_a_plugin_is_not_run_in_a_tight_loop():
    async def main():
        plugin = Plugin()
        bearer = Bearer(await plugin.load(), VirtualClock())
        for _ in range(60):
            await bearer.refused(await bearer.token())
            await asyncio.sleep(1)
        return plugin.runs

    assert loop.run(main()) <= 60 / RELOAD_SECONDS + 2


def test_a_plugin_that_fails_leaves_the_last_token_and_is_tried_again(caplog):
    async def main():
        plugin = Plugin()
        bearer = Bearer(await plugin.load(), VirtualClock())
        plugin.broken = True
        assert not await bearer.refused("token-1")
        kept = await bearer.token()
        plugin.broken = False
        await asyncio.sleep(RELOAD_SECONDS)
        return kept, await bearer.refused("token-1"), await bearer.token()

    assert loop.run(main()) == ("token-1", True, "token-2")
    assert "cannot be renewed" in caplog.text


def test_one_who_gives_up_does_not_take_the_renewal_with_him():
    async def main():
        plugin = Plugin()
        bearer = Bearer(await plugin.load(), VirtualClock())
        first = asyncio.create_task(bearer.refused("token-1"))
        second = asyncio.create_task(bearer.refused("token-1"))
        await asyncio.sleep(0.5)
        first.cancel()
        return await second

    assert loop.run(main())


def test_without_a_token_none_is_sent():
    async def main():
        bearer = Bearer(PLAIN, VirtualClock())
        return await bearer.token(), await bearer.refused("")

    assert loop.run(main()) == ("", False)
