# SPDX-License-Identifier: Apache-2.0
"""The root tree that all hosts share, read-only: made once by mmdebstrap, found again by what it was made from."""
import contextlib
import hashlib
import os
import re
import shutil
import subprocess

from .state import CACHE, SandboxError, locked, say, write_file

SUITE = "bookworm"
# What our programs are linked with: tests/libraries.py compares.
LIBRARIES = """
    libarchive13 libbpf1 libcurl3-gnutls libgnutls30 libjansson4 libmicrohttpd12 libnettle8 libnl-3-200 libnl-genl-3-200
    libnl-route-3-200 libpcre2-8-0 librdkafka1 libseccomp2 libsmartcols1 libsqlite3-0 libyaml-0-2 libzstd1
""".split()
PACKAGES = LIBRARIES + """
    systemd systemd-sysv dbus libpam-systemd polkitd
    iproute2 procps
    python3-minimal python3-numpy python3-jeepney python3-yaml python3-cloudpickle openssl
    libasan8 libubsan1
    openssh-server openssh-client
    cockpit-ws cockpit-bridge cockpit-system
""".split()

# What a host of a test does not need and would pay for at every boot.
MASKED = """
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
    systemd-tmpfiles-clean.timer console-getty.service getty.target getty-static.service
    ldconfig.service systemd-hwdb-update.service systemd-journal-catalog-update.service systemd-update-done.service
    systemd-update-utmp.service systemd-update-utmp-runlevel.service
    systemd-firstboot.service systemd-machine-id-commit.service systemd-pstore.service systemd-random-seed.service
    systemd-pcrphase.service systemd-pcrphase-sysinit.service systemd-repart.service systemd-boot-system-token.service
    proc-sys-fs-binfmt_misc.automount systemd-binfmt.service systemd-modules-load.service kmod-static-nodes.service
    dev-hugepages.mount sys-fs-fuse-connections.mount sys-kernel-config.mount sys-kernel-debug.mount
    systemd-ask-password-console.path systemd-ask-password-wall.path systemd-networkd-wait-online.service
""".split()

# A dozen processes at each boot and each daemon-reload, which look for disks, consoles and scripts that a container has not.
GENERATORS = """
    systemd-bless-boot-generator systemd-cryptsetup-generator systemd-debug-generator systemd-fstab-generator
    systemd-getty-generator systemd-gpt-auto-generator systemd-hibernate-resume-generator systemd-integritysetup-generator
    systemd-rc-local-generator systemd-run-generator systemd-system-update-generator systemd-sysv-generator
    systemd-veritysetup-generator
""".split()

# Started by the tests that want it.
DISABLED = ("multi-user.target.wants/ssh.service", "sshd.service", "sockets.target.wants/cockpit.socket")

USERS = (("ml", 1000), ("eve", 1001))

JOURNAL = """[Journal]
Storage=persistent
SystemMaxUse=256M
ForwardToSyslog=no
Audit=no
"""

# Bump when customise() changes.
RECIPE = 3


def key():
    return hashlib.sha256(repr((RECIPE, SUITE, sorted(PACKAGES), sorted(MASKED), USERS, JOURNAL)).encode()).hexdigest()[:16]


def customise(root):
    """Masks what hosts of tests pay for in vain, adds their users, empties what belongs to one host."""
    def remove(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    for unit in MASKED:
        path = f"{root}/etc/systemd/system/{unit}"
        remove(path)
        os.symlink("/dev/null", path)
    os.makedirs(f"{root}/etc/systemd/system-generators", exist_ok=True)
    for generator in GENERATORS:
        os.symlink("/dev/null", f"{root}/etc/systemd/system-generators/{generator}")
    for link in DISABLED:
        remove(f"{root}/etc/systemd/system/{link}")

    def append(name, line):
        with open(f"{root}/etc/{name}", "a") as f:
            f.write(line + "\n")

    for name, number in USERS:
        append("passwd", f"{name}:x:{number}:{number}::/home/{name}:/bin/bash")
        append("group", f"{name}:x:{number}:")
        append("shadow", f"{name}:*:19000:0:99999:7:::")
        append("gshadow", f"{name}:!::")
        shutil.copytree(f"{root}/etc/skel", f"{root}/home/{name}", symlinks=True)
        for directory, _, files in os.walk(f"{root}/home/{name}"):
            for path in [directory] + [f"{directory}/{f}" for f in files]:
                os.chown(path, number, number, follow_symlinks=False)
        os.chmod(f"{root}/home/{name}", 0o755)

    os.makedirs(f"{root}/etc/systemd/journald.conf.d", exist_ok=True)
    write_file(f"{root}/etc/systemd/journald.conf.d/sandbox.conf", JOURNAL)
    # systemd-nspawn hands the id in; hosts know each other by /etc/hosts alone.
    write_file(f"{root}/etc/machine-id", "")
    for name in ("hostname", "resolv.conf"):
        remove(f"{root}/etc/{name}")
    os.makedirs(f"{root}/var/log/journal", exist_ok=True)
    shutil.rmtree(f"{root}/usr/share/doc", ignore_errors=True)
    shutil.rmtree(f"{root}/usr/share/locale", ignore_errors=True)


def apt_options():
    """mmdebstrap knows nothing of a proxy set in the machine's apt configuration."""
    try:
        dump = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [f"--aptopt={line.rstrip(';')}" for line in dump.splitlines()
            if line.startswith(("Acquire::http::Proxy", "Acquire::https::Proxy")) and '""' not in line]


def ensure():
    """Returns the path of the root tree, making it when this recipe was not used before (about 30 s, needs a mirror)."""
    root = os.path.join(CACHE, key())
    if os.path.isdir(root):
        return root
    with locked(os.path.join(CACHE, "lock"), "another sandbox that is making the root tree") as lock:
        if os.path.isdir(root):
            return root
        if not shutil.which("mmdebstrap"):
            raise SandboxError("mmdebstrap is missing; run 'tools/install-deps sandbox'")
        say(f"making the root tree of the hosts in {root} (once, about 30 s) …")
        work = f"{root}.new"
        shutil.rmtree(work, ignore_errors=True)
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", *apt_options(),
                   SUITE, work]
        if os.environ.get("PRIMUS_SANDBOX_MIRROR"):
            command.append(os.environ["PRIMUS_SANDBOX_MIRROR"])
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              pass_fds=[lock])
        if done.returncode != 0:
            raise SandboxError("mmdebstrap failed:\n" + "\n".join(done.stderr.splitlines()[-15:]))
        os.chmod(work, 0o755)
        customise(work)
        for directory in ("var/lib/primus", "var/lib/primus-agent", "etc/primus"):
            os.makedirs(f"{work}/{directory}", exist_ok=True)
        os.rename(work, root)
    return root


def clean():
    """Removes every root tree that was made here, tests/vm's and tests/package's too."""
    lock = os.path.join(CACHE, "lock")
    with locked(lock, "another sandbox that is making the root tree"):
        for name in os.listdir(CACHE):
            if re.fullmatch(r"((vm-|packages-)?[0-9a-f]{16}(\.new)?|debs)", name):
                shutil.rmtree(os.path.join(CACHE, name))
        os.unlink(lock)
        with contextlib.suppress(OSError):
            os.rmdir(CACHE)
