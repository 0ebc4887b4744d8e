# SPDX-License-Identifier: Apache-2.0
"""Where the program is, for whoever asks: on $PRIMUS_STACK_SIGNAL every thread's Python stack is written to a file that
agentd reads ($PRIMUS_STACKS/stacks.PID), or to standard error where there is none. Written by a C handler, so also when the
interpreter hangs in a lock, a collective or a driver. PRIMUS_STACK_SIGNAL= in the job's environment opts out.
Installed a second time as _primus_stacks, for programs that import nothing of ours (executor/python/sitecustomize.py)."""
import os
import signal
import sys

_file = None
_forks = False


def _open():
    if not os.environ.get("PRIMUS_STACKS"):
        return None
    path = _path()
    try:
        os.unlink(path)  # of a process that had this number before
    except OSError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.fdopen(_out_of_the_way(os.open(path, flags, 0o600)), "wb", buffering=0)
    except OSError:
        return None


def _out_of_the_way(fd):
    """A number that is not given out again soon, should the program close descriptors that are not its own."""
    import fcntl
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 512)
    except (OSError, AttributeError):
        return fd
    os.close(fd)
    return high


def _path():
    return os.path.join(os.environ.get("PRIMUS_STACKS", ""), "stacks.%d" % os.getpid())


def _remove():
    if _file is not None:
        try:
            os.unlink(_path())
        except OSError:
            pass


def register():
    """True: this process answers. Called by import primus; a program's own handler is left alone."""
    global _file, _forks
    if __name__ != "_primus_stacks" and "_primus_stacks" in sys.modules:
        return sys.modules["_primus_stacks"].answers()  # it has been done
    try:
        number = int(os.environ.get("PRIMUS_STACK_SIGNAL") or 0)
        if number <= 0 or signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
            return False
        import faulthandler
        before, _file = _file, _open()
        target = _file or sys.stderr
        if target is None:
            return False
        faulthandler.register(number, file=target, all_threads=True, chain=False)
        if before is not None:
            before.close()
    except (ValueError, OSError, RuntimeError, AttributeError, ImportError):
        return False  # a program is not to end of it
    if not _forks:
        import atexit
        _forks = True
        os.register_at_fork(after_in_child=register)
        atexit.register(_remove)
    return True


def answers():
    return _forks
