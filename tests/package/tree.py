# SPDX-License-Identifier: Apache-2.0
"""The root tree of hosts on which packages are installed: plain Debian with what our packages depend on, since no host reaches a
mirror, and with what else a host of that kind has and packages must get along with. Nothing of Primus is in it.
"""
import hashlib
import os
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools"))

from sandboxlib import rootfs  # noqa: E402
from sandboxlib.state import CACHE, SandboxError, locked  # noqa: E402

PACKAGES = rootfs.LIBRARIES + """
    cockpit-bridge
    systemd systemd-sysv dbus libpam-systemd polkitd passwd iproute2 procps apt debconf
    python3 python3-numpy python3-yaml python3-cloudpickle openssl bash-completion man-db needrestart unattended-upgrades
""".split()
RECIPE = 1


def ensure(packages=PACKAGES):
    """Returns its path, making it when this recipe was not used before (about a minute, needs a mirror)."""
    key = hashlib.sha256(repr((RECIPE, sorted(packages), rootfs.key())).encode()).hexdigest()[:16]
    root = os.path.join(CACHE, f"packages-{key}")
    with locked(os.path.join(CACHE, "lock"), "another one that is making a root tree") as lock:
        if os.path.isdir(root):
            return root
        work = f"{root}.new"
        shutil.rmtree(work, ignore_errors=True)
        mirror = os.environ.get("PRIMUS_SANDBOX_MIRROR")
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", *rootfs.apt_options(), rootfs.SUITE,
             work, *([mirror] if mirror else [])],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", pass_fds=[lock])
        if done.returncode != 0:
            raise SandboxError("mmdebstrap failed:\n" + "\n".join(done.stderr.splitlines()[-15:]))
        os.chmod(work, 0o755)
        rootfs.customise(work)
        os.rename(work, root)
    return root


if __name__ == "__main__":
    print(ensure())
