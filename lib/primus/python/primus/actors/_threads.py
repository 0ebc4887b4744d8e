# SPDX-License-Identifier: Apache-2.0
"""An actor whose calls run in threads, several at a time; they begin in their order."""
import concurrent.futures

from ._actor import Actor


class ThreadedActor(Actor):
    def __init__(self, actor, concurrency):
        self.__dict__.update(actor.__dict__)
        self.threads = concurrent.futures.ThreadPoolExecutor(concurrency, "actor")
        self.begun = {}  # by id

    def cancel(self, id):
        begun = self.begun.pop(id, None)
        if begun is not None:
            begun.cancel()

    def _one(self, id, body, buffers):
        self.run_call(id, body, buffers)
        self.begun.pop(id, None)
        self.answers.flush()

    def run_all(self):
        while self.queue:
            id, body, buffers = self.next()
            self.begun[id] = self.threads.submit(self._one, id, body, buffers)

    def run(self):
        super().run()
        self.threads.shutdown()
