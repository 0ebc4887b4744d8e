# SPDX-License-Identifier: Apache-2.0
"""Virtual machines for tests: Debian with systemd as PID 1, cgroup v2 with its controllers, kernel 6.1. They are emulated
(no KVM), so everything in there takes some twenty times longer: one boot, many checks.

A test makes a tree, which the machine sees as /payload and whose script "start" it runs, in the place of a login; when that
ends the machine goes off. Lines "ok - WHAT" and "not ok - WHAT" on its console are counted, "finished" is the last one. The base
of the machine is kept in the cache of tools/sandbox.
"""
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools"))

from sandboxlib import rootfs  # noqa: E402
from sandboxlib.state import CACHE, SandboxError, locked, write_file  # noqa: E402

PACKAGES = rootfs.LIBRARIES + """
    linux-image-cloud-amd64 initramfs-tools kmod udev systemd systemd-sysv dbus libpam-systemd polkitd
    iproute2 procps util-linux systemd-container mmdebstrap meson ninja-build python3 openssl
""".split()
MASKED = """
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
    getty.target serial-getty@ttyS0.service systemd-tmpfiles-clean.timer systemd-timesyncd.service
""".split()
CHECK = """[Unit]
Description=Checks of Primus
RequiresMountsFor=/payload
After=multi-user.target

[Service]
Type=oneshot
Environment=HOME=/root PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
ExecStart=/bin/sh /payload/start
ExecStopPost=/bin/systemctl poweroff --force --no-block
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0

[Install]
WantedBy=default.target
"""
FSTAB = "/dev/vdb /payload ext4 defaults 0 0\n"
RECIPE = 1
# With AVX, numpy's matrix products come out wrong or end in SIGSEGV: the emulator's fault.
CPU = "max,avx=off,avx2=off,fma=off,f16c=off"
ESCAPE = re.compile(r"\x1b(c|\[[0-9;?]*[A-Za-z])")
LINE = re.compile(r"(ok|not ok) - (.+)")


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise SandboxError(f"{' '.join(command)} failed:\n" + "\n".join((done.stdout + done.stderr).splitlines()[-15:]))
    return done.stdout


def _checks(root):
    """A machine that runs what is on its second disk, and goes off."""
    write_file(f"{root}/etc/systemd/system/check.service", CHECK)
    wants = f"{root}/etc/systemd/system/default.target.wants"
    os.makedirs(wants, exist_ok=True)
    os.symlink("/etc/systemd/system/check.service", f"{wants}/check.service")
    write_file(f"{root}/etc/fstab", FSTAB)
    os.makedirs(f"{root}/payload")


def base(packages=PACKAGES, recipe=(RECIPE, CHECK, FSTAB), customise=_checks):
    """The directory with the machine's disk, kernel and initrd (and dpkg's status of what is installed there), made when this recipe
    was not used before. recipe: whatever customise(), which changes the tree, depends on."""
    key = hashlib.sha256(repr((sorted(packages), sorted(MASKED), recipe)).encode()).hexdigest()[:16]
    place = os.path.join(CACHE, f"vm-{key}")
    if os.path.isdir(place):
        return place
    with locked(os.path.join(CACHE, "lock"), "another one that is making a root tree"):
        if os.path.isdir(place):
            return place
        print("making the machine (once, about a minute) …", flush=True)
        work = f"{place}.new"
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        root = f"{work}/root"
        mirror = os.environ.get("PRIMUS_SANDBOX_MIRROR")
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", *rootfs.apt_options(), rootfs.SUITE,
            root, *([mirror] if mirror else []))
        for unit in MASKED:
            path = f"{root}/etc/systemd/system/{unit}"
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink("/dev/null", path)
        customise(root)
        write_file(f"{root}/etc/machine-id", "")
        for link, name in (("vmlinuz", "kernel"), ("initrd.img", "initrd")):
            shutil.copyfile(os.path.realpath(f"{root}/{link}") if not os.path.islink(f"{root}/{link}")
                            else os.path.join(root, os.readlink(f"{root}/{link}")), f"{work}/{name}")
        shutil.copyfile(f"{root}/var/lib/dpkg/status", f"{work}/status")
        run("mke2fs", "-q", "-F", "-t", "ext4", "-d", root, f"{work}/disk", "4G")
        shutil.rmtree(root)
        os.rename(work, place)
    return place


def make_disk(tree, disk, size):
    """A file system image with what is in the tree, which goes."""
    run("mke2fs", "-q", "-F", "-t", "ext4", "-d", tree, disk, size)
    shutil.rmtree(tree)


def copy_source(tree):
    """This repository as it is, without what is built."""
    listed = run("git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        if os.path.lexists(f"{SOURCE}/{name}"):
            os.makedirs(os.path.dirname(f"{tree}/{name}"), exist_ok=True)
            shutil.copy2(f"{SOURCE}/{name}", f"{tree}/{name}", follow_symlinks=False)


def qemu(place, disks, cwd, memory, options, words):
    """disks: image files; the first is /payload. The base and the disks are as before afterwards."""
    drives = [word for disk in disks for word in ("-drive", f"file={disk},if=virtio,format=raw")]
    return subprocess.Popen(
        ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", CPU, "-smp", "2", "-m", str(memory), "-nographic",
         "-no-reboot", "-nic", "none", "-kernel", f"{place}/kernel", "-initrd", f"{place}/initrd", "-snapshot",
         "-drive", f"file={place}/disk,if=virtio,format=raw", *drives, *options,
         "-append", f"root=/dev/vda rw console=ttyS0 panic=-1 quiet systemd.show_status=0 mitigations=off {words}".rstrip()],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd)


def boot(place, disks, cwd, limit, memory=3072, options=(), words="", log=None):
    """Boots, prints what the machine says (into the file log, too) and says how many checks failed. limit: seconds."""
    started, passed, failed, finished = time.monotonic(), 0, 0, False
    lock = open("/tmp/primus-vm.lock", "w")  # noqa: SIM115 - machines of other tests wait for theirs
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("starting the machine …", flush=True)
    started = time.monotonic()
    machine = qemu(place, disks, cwd, memory, options, words)
    timer = threading.Timer(limit, machine.kill)
    timer.start()
    try:
        for raw in machine.stdout:
            line = ESCAPE.sub("", raw.decode(errors="replace")).rstrip("\r\n")
            said = f"{time.monotonic() - started:6.0f}s  {line}"
            print(said, flush=True)
            if log:
                print(said, file=log, flush=True)
            match = LINE.match(line)
            if match:
                passed += match[1] == "ok"
                failed += match[1] != "ok"
            finished |= line == "finished"
    finally:
        timer.cancel()
        machine.kill()
        machine.wait()
        lock.close()
    if not finished:
        print(f"not ok - the machine came to an end before the checks did, after {time.monotonic() - started:.0f} s")
        failed += 1
    print(f"{passed} passed, {failed} failed, in {time.monotonic() - started:.0f} s")
    return failed


def prepare_host():
    """Signals end this with its machines; what a machine needs is installed."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(130))
    if os.geteuid() != 0:
        raise SandboxError("root trees are made by root; run this as root")
    run(f"{SOURCE}/tools/install-deps", "vm", "sandbox")


def prepare(build):
    """The build directory's path, when everything is there that a machine needs."""
    prepare_host()
    build = os.path.abspath(build)
    if not os.path.exists(f"{build}/build.ninja"):
        raise SandboxError(f"{build} is not a build directory; build first, see CONTRIBUTING.md")
    return build


def cli(main, name):
    """Runs main and exits with its status."""
    try:
        sys.exit(main())
    except SandboxError as e:
        print(f"{name}: {e}", file=sys.stderr)
        sys.exit(2)
