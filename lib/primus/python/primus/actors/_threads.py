# SPDX-License-Identifier: Apache-2.0
"""An actor whose calls run in threads, several at a time; they begin in their order."""
import concurrent.futures
import threading

from . import _wire
from ._actor import Actor, end


class ThreadedActor(Actor):
    def __init__(self, actor, concurrency):
        self.__dict__.update(actor.__dict__)
        self.threads = concurrent.futures.ThreadPoolExecutor(concurrency, "actor")
        self.begun = {}  # by id
        self.heard = threading.Condition(self.taking)

    def cancel(self, id):
        begun = self.begun.pop(id, None)
        if begun is not None:
            begun.cancel()

    def _one(self, id, body, buffers):
        try:
            self.run_call(id, body, buffers)
            self.answers.flush()
        except _wire.Ended:
            end(0)
        except SystemExit as e:  # of a thread's the process would hear nothing
            end(e)

    def read_beside(self):
        """The main thread reads."""
        self.answers.flush()

    def take(self):
        with self.heard:  # credit is given here, and used in threads
            super().take()

    def read(self, block):
        came = super().read(block)
        with self.heard:
            self.heard.notify_all()
        return came

    def has_credit(self, id):
        """The main thread reads."""
        if self.credit.get(id) == 0:
            self.answers.flush()
        with self.heard:
            self.heard.wait_for(lambda: self.leaving or self.credit.get(id) != 0)
        return self.is_wanted(id)

    def run_all(self):
        while self.queue:
            id, body, buffers = self.next()
            self.begun[id] = begun = self.threads.submit(self._one, id, body, buffers)
            begun.add_done_callback(lambda _, id=id: self.begun.pop(id, None))

    def run(self):
        super().run()
        self.threads.shutdown()
