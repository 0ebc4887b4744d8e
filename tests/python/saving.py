# SPDX-License-Identifier: Apache-2.0
"""What tests of checkpoints share: a feed, something to save, and a process that is gone in the middle."""
import os


class Feed:
    """Where a feed stands, and what of it counts."""

    def __init__(self, at=0):
        self.at, self.committed = at, None

    def checkpoint(self):
        return b"at %d" % self.at

    def commit(self, data):
        self.committed = data


def save(kept, step, feed=None, text=None, **metrics):
    with kept.save(step, feed=feed, **metrics) as path:
        (path / "sub").mkdir()
        (path / "sub" / "model").write_text(text or f"step {step}")
        (path / "empty").write_bytes(b"")


def crash_at(n, work, of, names):
    """work() in a child that is gone, as by SIGKILL, ahead of its n-th call of those of a module or class. True: it came to its end."""
    pid = os.fork()
    if pid == 0:
        left = n
        def counted(call):
            def f(*args, **more):
                nonlocal left
                left -= 1
                if left <= 0:
                    os._exit(9)
                return call(*args, **more)
            return f
        for name in names:
            setattr(of, name, counted(getattr(of, name)))
        try:
            work()
        except BaseException:
            os._exit(2)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 9), status
    return status == 0
