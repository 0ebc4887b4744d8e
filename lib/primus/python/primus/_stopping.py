# SPDX-License-Identifier: Apache-2.0
"""Whether somebody wants this process to end: primus.should_stop()."""
import signal

_asked = None  # None: nobody has called yet


def should_stop():
    """True once the executor was told to stop (SIGTERM): a trial that is behind the others, a job that gives way to another one, is
    suspended or killed, a host that is drained. The first call, in the main thread (ValueError), takes the signal over: it does not
    end the process any more. Who hears True saves what it has and exits, within the job's stopGrace, behind which SIGKILL comes:

        for step in range(start, steps):
            train(step)
            if primus.should_stop():
                save(step)
                sys.exit(0)

    A handler that was there is called as well. Works the same outside of Primus."""
    global _asked
    if _asked is None:
        before = signal.getsignal(signal.SIGTERM)

        def ask(number, frame):
            global _asked
            _asked = True
            if callable(before):
                before(number, frame)
        _asked = False  # before: it may come at once
        try:
            signal.signal(signal.SIGTERM, ask)
        except ValueError:
            _asked = None
            raise
    return _asked
