# SPDX-License-Identifier: Apache-2.0
"""An actor whose calls run as tasks of one loop; they begin in their order."""
import asyncio
import functools
import inspect
import types

from . import _wire
from ._actor import Actor, told


class AsyncActor(Actor):
    def __init__(self, actor, concurrency):
        self.__dict__.update(actor.__dict__)
        self.tasks, self.concurrency = {}, concurrency
        self.heard = asyncio.Event()  # something has come, since somebody began to wait

    def cancel(self, id):
        if id in self.tasks:
            self.tasks[id].cancel()

    async def _one(self, id, body, buffers, room):
        try:
            async with room:
                method, args, kwargs = self.read_call(body, buffers)
                value = method(*args, **kwargs)
                if inspect.isawaitable(value):
                    value = await value
                elif isinstance(value, (types.AsyncGeneratorType, types.GeneratorType)):
                    value = await self._stream(id, value)
        except asyncio.CancelledError:
            pass  # who has cancelled it waits for nothing
        except Exception as e:
            self.answer(id, _wire.RAISED, told(e))
        else:
            self.answer(id, _wire.DONE, value)
        self.tasks.pop(id, None)
        self.answers.flush()

    async def _stream(self, id, items):
        self.begin_stream(id)
        try:
            while self.is_wanted(id):
                if self.credit[id] == 0:
                    self.answers.flush()
                    self.heard.clear()
                    await self.heard.wait()
                    continue
                try:
                    self.say_item(id, await anext(items) if isinstance(items, types.AsyncGeneratorType) else next(items))
                except (StopAsyncIteration, StopIteration) as e:
                    return getattr(e, "value", None)
            return None
        finally:
            self.credit.pop(id, None)
            await items.aclose() if isinstance(items, types.AsyncGeneratorType) else items.close()

    def wait_for(self, asked, timeout):
        """Nothing else runs meanwhile: await it. What has come begins afterwards."""
        reads = super().wait_for(asked, timeout)
        if reads:
            asyncio.get_running_loop().call_soon(self.hear)
        return reads

    def read_beside_is_over(self):
        self.loop.call_soon_threadsafe(self.hear)

    def _hear(self, loop, over, room):
        self._begin(loop, room)  # also what came while somebody waited
        while self.read(False):
            self._begin(loop, room)
        self.heard.set()
        if self.leaving and not over.done():
            over.set_result(None)

    def _begin(self, loop, room):
        while self.queue:
            id, body, buffers = self.next()
            self.tasks[id] = loop.create_task(self._one(id, body, buffers, room))

    async def _serve(self):
        loop, room = asyncio.get_running_loop(), asyncio.Semaphore(self.concurrency)
        over = loop.create_future()
        self.take()
        self._begin(loop, room)
        self.answers.flush()
        self.loop, self.hear = loop, functools.partial(self._hear, loop, over, room)
        loop.add_reader(self.socket, self.hear)
        self.hear()
        await over
        loop.remove_reader(self.socket)
        while self.tasks:
            await asyncio.wait(list(self.tasks.values()))

    def run(self):
        asyncio.run(self._serve())
