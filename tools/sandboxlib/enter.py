# SPDX-License-Identifier: Apache-2.0
"""Runs a command inside a host as one of its users, as a login would: stdin, stdout, exit status and signals go through.

The parent stays outside the host's PID namespace to forward signals; the child is a process of the host in every
namespace and in a cgroup of its own beside the host's units. Imports little: a start takes about 20 ms.
"""
import ctypes
import os
import signal
import sys
import warnings  # noqa: F401 os.execvpe() wants it, inside the host, where another Python's modules are

from .state import SandboxError

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

PR_SET_PDEATHSIG = 1
SI_KERNEL = 0x80

CGROUP = "sandbox.exec"  # of commands, beside the host's own
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FORWARDED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
             signal.SIGWINCH}

libc = ctypes.CDLL(None, use_errno=True)


class Account:
    """A user of the host, read from its own files: the build machine's libc must not load the host's NSS modules."""

    def __init__(self, root, user):
        for name, _, uid, gid, _, home, shell in self._lines(f"{root}/etc/passwd", 7):
            if user in (name, uid):
                break
        else:
            raise SandboxError(f"no user '{user}' in the host's /etc/passwd")
        self.name, self.uid, self.gid, self.home, self.shell = name, int(uid), int(gid), home, shell
        others = {int(g) for _, _, g, members in self._lines(f"{root}/etc/group", 4) if name in members.split(",")}
        self.groups = [self.gid, *sorted(others - {self.gid})]  # its own first

    @staticmethod
    def _lines(path, fields):
        with open(path) as f:
            for line in f:
                parts = line.rstrip("\n").split(":")
                if len(parts) == fields:
                    yield parts

    def environment(self):
        env = {"PATH": PATH, "HOME": self.home, "USER": self.name, "LOGNAME": self.name,
               "SHELL": self.shell or "/bin/sh", "LANG": "C.UTF-8"}
        for name in ("TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES"):
            if name in os.environ:
                env[name] = os.environ[name]
        return env

    def become(self):
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def make_cgroups(payload):
    """For commands, beside those of the host's own processes; returns the files by which a process joins them."""
    for parent in payload:
        try:
            os.makedirs(f"{parent}/{CGROUP}", exist_ok=True)
        except OSError as e:
            raise SandboxError(f"{parent}/{CGROUP}: {e.strerror}") from e
    return [f"{parent}/{CGROUP}/cgroup.procs" for parent in payload]


def _join_cgroups(payload):
    """Puts this process into a cgroup where it counts, and dies, with the host."""
    for path in make_cgroups(payload):
        try:
            with open(path, "w") as f:
                f.write("0")
        except OSError as e:
            raise SandboxError(f"{path}: {e.strerror}") from e


def _child(account, argv, cwd):
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        account.become()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        try:
            os.chdir(cwd or account.home)
        except OSError as e:
            if cwd:
                print(f"sandbox: cannot enter {cwd}: {e.strerror}", file=sys.stderr, flush=True)
                os._exit(126)
            os.chdir("/")
        os.execvpe(argv[0], argv, account.environment())
    except FileNotFoundError:
        print(f"sandbox: {argv[0]}: command not found in the host", file=sys.stderr, flush=True)
        os._exit(127)
    except OSError as e:
        print(f"sandbox: {argv[0]}: {e.strerror}", file=sys.stderr, flush=True)
        os._exit(126)


def _wait(pid):
    """Forwards signals to the child until it ends; returns its wait status."""
    while True:
        info = signal.sigwaitinfo(FORWARDED | {signal.SIGCHLD})
        if info.si_signo == signal.SIGCHLD:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
        elif info.si_code != SI_KERNEL:
            # A key on the terminal already reached the child, which is of the same foreground group.
            os.kill(pid, info.si_signo)


def enter(leader, argv, user="root", cwd=None):
    """Runs argv in the host of that leader and returns its exit status, 128 + N when signal N ended it."""
    account = Account(f"/proc/{leader['pid']}/root", user)
    _join_cgroups(leader["payload"])
    pidfd = os.pidfd_open(leader["pid"])
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    if libc.setns(pidfd, NAMESPACES) < 0:
        raise SandboxError(f"cannot enter the host: {os.strerror(ctypes.get_errno())}")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(account, argv, cwd)
    status = _wait(pid)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
