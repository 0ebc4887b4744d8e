# SPDX-License-Identifier: Apache-2.0
"""Two virtual machines, a and b, of a plain Debian tree, with disks that last over reboots and power cuts and a network of
their own: Ethernet frames go from one QEMU to the other through unix sockets, and nowhere else.

A machine does what it is told through a virtio-serial port: a shell service in there, running as root, takes a line "ID SECONDS
COMMAND INPUT" (the latter two in base64, "-" is no input), runs the command with bash and answers "ID STATUS OUTPUT ERRORS". After
each boot it says "hello BOOT-ID". Nothing else than bash and coreutils is needed for that, so nothing has to be installed that a
plain server does not have.
"""
import base64
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time
from typing import NamedTuple

import machine
from checks import Failed, need, wait_for
from machine import CPU, run, write_file
from sandboxlib.state import start_time

# What Debian installs on a server without a desktop, as far as it matters here (priority required and important, and dbus).
PACKAGES = """
    linux-image-cloud-amd64 initramfs-tools kmod udev systemd systemd-sysv dbus libpam-systemd
    iproute2 iputils-ping procps netbase e2fsprogs
""".split()
CONTROL = r"""#!/bin/bash
# Runs what the tests send through the virtio-serial port.
until [ -e /dev/virtio-ports/control ]; do sleep 0.1; done
exec 3<> /dev/virtio-ports/control
answer() {
        local place status
        place=$(mktemp -d /run/control.XXXXXX)
        if [ "$4" = - ]; then : > "$place/in"; else base64 -d <<< "$4" > "$place/in"; fi
        base64 -d <<< "$3" > "$place/command"
        HOME=/root timeout -k 5 "$2" bash "$place/command" < "$place/in" > "$place/out" 2> "$place/err" 3>&-
        status=$?
        (flock 9; echo "$1 $status $(base64 -w 0 < "$place/out")- $(base64 -w 0 < "$place/err")-" >&3) 9> /run/control.lock
        rm -rf "$place"
}
echo "hello $(cat /proc/sys/kernel/random/boot_id)" >&3
while :; do
        if read -r id seconds command input <&3; then
                answer "$id" "$seconds" "$command" "$input" &
        else
                sleep 0.2
        fi
done
"""
SERVICE = """[Unit]
Description=Control channel of the tests
After=dbus.service systemd-logind.service

[Service]
ExecStart=/bin/bash /usr/local/sbin/control
Restart=always
KillMode=process
OOMScoreAdjust=-900

[Install]
WantedBy=multi-user.target
"""
FSTAB = "/dev/vda / ext4 errors=remount-ro 0 1\n/dev/vdb /srv/packages ext4 ro,nofail 0 0\n"
RECIPE = 1
HOSTS = {"a": "192.168.77.1", "b": "192.168.77.2"}
NETWORK = "[Match]\nName=en* eth*\n\n[Network]\nAddress={}/24\nLinkLocalAddressing=no\n"
PATIENCE = float(os.environ.get("PRIMUS_VM_PATIENCE", "1"))
MEMORY = 2048


def customise(root):
    write_file(f"{root}/usr/local/sbin/control", CONTROL)
    write_file(f"{root}/etc/systemd/system/control.service", SERVICE)
    wants = f"{root}/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wants, exist_ok=True)
    os.symlink("/etc/systemd/system/control.service", f"{wants}/control.service")
    write_file(f"{root}/etc/fstab", FSTAB)
    write_file(f"{root}/etc/apt/sources.list", "")
    os.makedirs(f"{root}/srv/packages")


def base():
    return machine.base(PACKAGES, (RECIPE, CONTROL, SERVICE, FSTAB), customise)


class Done(NamedTuple):
    status: int
    out: str
    err: str


class Gone(Failed):
    """The machine went away, or was taken away, during a command."""


class Machine:
    """One of the two; name is its host name too."""

    def __init__(self, pair, name):
        self.pair, self.name, self.log = pair, name, pair.log
        self.dir = os.path.join(pair.dir, name)
        os.makedirs(self.dir, exist_ok=True)
        self.boot = None
        self.pid = self.began = self.socket = self.process = None
        self._lock, self._hello, self._waiting, self._count = threading.Lock(), threading.Condition(), {}, 0

    # ---- power

    def start(self):
        peer = next(name for name in HOSTS if name != self.name)
        for name in ("net", "control"):
            if os.path.exists(f"{self.dir}/{name}"):
                os.unlink(f"{self.dir}/{name}")
        place = self.pair.place
        if not os.path.exists(f"{self.dir}/disk"):
            run("qemu-img", "create", "-q", "-f", "qcow2", "-b", f"{place}/disk", "-F", "raw", f"{self.dir}/disk")
        command = [
            "qemu-system-x86_64", "-nodefaults", "-display", "none", "-accel", "tcg,thread=multi", "-cpu", CPU, "-smp", "1",
            "-m", str(MEMORY), "-kernel", f"{place}/kernel", "-initrd", f"{place}/initrd",
            "-append", "root=/dev/vda rw console=ttyS0 panic=-1 quiet systemd.show_status=0 mitigations=off",
            "-drive", f"file={self.dir}/disk,if=virtio,format=qcow2", "-drive", f"file={self.pair.packages},if=virtio,format=raw,readonly=on",
            "-netdev", f"dgram,id=net,local.type=unix,local.path={self.dir}/net,remote.type=unix,remote.path={self.pair.dir}/{peer}/net",
            "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:77:00:0{HOSTS[self.name][-1]},romfile=",
            "-chardev", f"file,id=console,path={self.pair.console(self.name)},append=on", "-serial", "chardev:console",
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=control,path={self.dir}/control,server=on,wait=off",
            "-device", "virtserialport,chardev=control,name=control"]
        if not self.pair.keep:  # a machine is not to outlive the tests, however these end
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with open(f"{self.pair.console(self.name)}.qemu", "ab") as said:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                                            pass_fds=self.pair.fds)
        self.pid, self.began = self.process.pid, start_time(self.process.pid)
        self.pair.save()
        self._connect()

    def _connect(self):
        def connected():
            need(f"QEMU of {self.name}", start_time(self.pid) == self.began, f"it ended; see {self.pair.console(self.name)}.qemu")
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.connect(f"{self.dir}/control")
                return connection
            except OSError:
                connection.close()
                return None

        self.socket = wait_for(f"control socket of {self.name}", connected, 30)
        threading.Thread(target=self._read, args=(self.socket,), daemon=True).start()

    def _read(self, connection):
        """Gives answers to those who wait for them."""
        rest = b""
        while True:
            try:
                block = connection.recv(1 << 16)
            except OSError:
                block = b""
            if not block:
                break
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                words = line.decode(errors="replace").split(" ")
                if words[0] == "hello" and len(words) == 2:
                    with self._hello:
                        fresh = self.boot != words[1]
                        self.boot = words[1]
                        self._hello.notify_all()
                    if fresh:
                        self._forget("the machine booted again")
                elif len(words) == 4 and (waiting := self._waiting.pop(words[0], None)):
                    waiting.put(Done(int(words[1]), *(base64.b64decode(w[:-1]).decode(errors="replace") for w in words[2:])))
        self._forget("the machine is off")

    def _forget(self, why):
        for number in list(self._waiting):
            if waiting := self._waiting.pop(number, None):
                waiting.put(why)

    def wait_boot(self, before=None, seconds=300):
        """Waits until the machine answers, in another boot than that one; sets up what makes it a host of the pair."""
        began = time.monotonic()
        with self._hello:
            need(f"{self.name} boots", self._hello.wait_for(lambda: self.boot not in (None, before), seconds * PATIENCE),
                 f"not within {seconds * PATIENCE:.0f} s, see {self.pair.console(self.name)}")
        self.log.note(f"{self.name} is up, after {time.monotonic() - began:.0f} s")

    def reboot(self):
        before = self.boot
        self.sh("systemctl reboot --no-block")
        self.wait_boot(before)

    def power_cut(self):
        """As if somebody pulled the plug: whatever the machine has not put on its disk is gone."""
        self.log.note(f"{self.name}: power cut")
        os.kill(self.pid, signal.SIGKILL)
        self.off()

    def off(self):
        """Waits until QEMU is gone."""
        if self.process:
            self.process.wait()
        else:  # started by a call before this one; a zombie may still have threads, which hold the disk
            wait_for(f"QEMU of {self.name} ends", lambda: not os.path.exists(f"/proc/{self.pid}"), 60)
        self.socket.close()
        self.pid = None

    def is_on(self):
        return self.pid and start_time(self.pid) == self.began

    def power_on(self):
        before = self.boot
        self.start()
        self.wait_boot(before)

    # ---- commands

    def begin(self, command, input=None, seconds=120):
        """Starts a command of bash there; returns a function that waits for what became of it (Done)."""
        answer = queue.Queue()
        limit = max(1, int(min(seconds * PATIENCE, self.pair.left())))
        with self._lock:
            self._count += 1
            number = f"{os.getpid()}.{self._count}"
            self._waiting[number] = answer
            began = time.monotonic()
            words = [number, str(limit), base64.b64encode(command.encode()).decode(),
                     base64.b64encode(input.encode()).decode() if input else "-"]
            try:
                self.socket.sendall((" ".join(words) + "\n").encode())
            except OSError as e:
                raise Gone(f"{self.name}: {command}: {e}") from e

        def end():
            try:
                done = answer.get(timeout=limit + 60)
            except queue.Empty:
                done = f"no answer within {limit + 60} s"
            if isinstance(done, str):
                self.log.note(f"{self.name}$ {command}\n    {done}")
                raise Gone(f"{self.name}: {command}: {done}")
            self.log.command(self.name, command, done, time.monotonic() - began)
            return done

        return end

    def try_sh(self, command, input=None, seconds=120):
        return self.begin(command, input, seconds)()

    def sh(self, command, input=None, seconds=120):
        """What the command prints; it has to succeed."""
        done = self.try_sh(command, input, seconds)
        need(f"{self.name}: {command}", done.status == 0, f"status {done.status}: {(done.err or done.out).strip()[-600:]}")
        return done.out

    def put(self, path, text, mode="0644"):
        """A file there."""
        self.sh(f"mkdir -p {os.path.dirname(path)} && cat > {path} && chmod {mode} {path}", input=text or "\n")

    def json(self, command, **options):
        return json.loads(self.sh(command, **options))


class Pair:
    """Both machines. directory: where their disks are; when it is kept (keep), machines that run there go on being used."""

    def __init__(self, directory, packages, log, keep=False, limit=3600, fds=()):
        self.dir, self.log, self.keep, self.fds = directory, log, keep, fds
        self.end = time.monotonic() + limit
        self.place = base()
        self.packages = os.path.join(directory, "packages.ext4")
        self.machines = {name: Machine(self, name) for name in HOSTS}
        self.a, self.b = self.machines.values()
        self.done = []  # checks that have passed on these machines
        self.person = 0.0  # seconds that a person would have typed and waited so far
        if not self._attach():
            os.rename(packages, self.packages)

    def left(self):
        return self.end - time.monotonic()

    def typed(self, m, command, **options):
        """What a person does: as sh() of a machine; the time is counted."""
        began = time.monotonic()
        try:
            return m.sh(command, **options)
        finally:
            self.person += time.monotonic() - began

    def remember(self, name, value):
        """Keeps what later checks need, with the machines."""
        write_file(f"{self.dir}/{name}.json", json.dumps(value), 0o600)

    def recall(self, name):
        with open(f"{self.dir}/{name}.json") as f:
            return json.load(f)

    def console(self, name):
        return os.path.join(self.dir, f"{name}.console")

    def save(self):
        record = {m.name: [m.pid, m.began] for m in self.machines.values() if m.pid}
        write_file(f"{self.dir}/pair.json", json.dumps({"machines": record, "done": self.done}) + "\n")

    def _attach(self):
        try:
            with open(f"{self.dir}/pair.json") as f:
                record = json.load(f)
        except FileNotFoundError:
            return False
        self.done = record["done"]
        for name, (pid, began) in record["machines"].items():
            m = self.machines[name]
            m.pid, m.began = pid, began
            if m.is_on():
                m._connect()
                m.boot = m.sh("cat /proc/sys/kernel/random/boot_id").strip()
        return True

    def up(self):
        """Boots those that are not up yet, at the same time, and gives them names and addresses."""
        fresh = [m for m in self.machines.values() if not m.is_on()]
        for m in fresh:
            m.start()
        for m in fresh:
            m.wait_boot()
            hosts = "".join(f"{address} {name}\n" for name, address in HOSTS.items())
            m.put("/etc/hosts", f"127.0.0.1 localhost\n{hosts}")
            m.put("/etc/hostname", f"{m.name}\n")
            m.put("/etc/systemd/network/10-pair.network", NETWORK.format(HOSTS[m.name]))
            m.sh("hostname -F /etc/hostname && systemctl restart systemd-hostnamed.service && systemctl enable --now systemd-networkd.service && "
                 "{ id ml > /dev/null 2>&1 || useradd -m -u 1000 -s /bin/bash ml; }")

    def down(self):
        for m in self.machines.values():
            if m.is_on():
                os.kill(m.pid, signal.SIGKILL)
                m.off()

    def keep_consoles(self):
        """Puts what the machines printed beside the log."""
        for name in HOSTS:
            for path in (self.console(name), f"{self.console(name)}.qemu"):
                if os.path.exists(path) and os.path.getsize(path):
                    shutil.copy(path, self.log.directory)
