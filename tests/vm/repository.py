# SPDX-License-Identifier: Apache-2.0
"""A repository for apt on a disk image: the packages under test, and those of Debian that a plain server lacks for them. The
machines have no other, and no way to one."""
import glob
import hashlib
import os
import shutil
import subprocess

import machine
from machine import CACHE, SandboxError, run, write_file

# What an administrator may have besides, and what is to leave executors alone.
EXTRA = ("needrestart",)
LINE = "deb [trusted=yes] file:/srv/packages/{} ./\n"


def names_of(packages):
    return sorted({run("dpkg-deb", "-f", path, "Package").strip() for path in packages})


def _download(work, status, packages):
    """Puts the packages of Debian into work/debian that these and EXTRA need on a machine with that status of dpkg."""
    cache = os.path.join(CACHE, "debs")
    for path in (f"{work}/apt/partial", f"{cache}/partial", f"{work}/debian"):
        os.makedirs(path, exist_ok=True)
    options = ["-o", f"Dir::State::status={status}", "-o", f"Dir::Cache={work}/apt", "-o", f"Dir::Cache::archives={cache}",
               "-o", "APT::Sandbox::User=root", "-q"]
    names = set()
    # What ours recommend as a person gets it, who says nothing about that.
    for wanted in (packages, ["--no-install-recommends", *EXTRA, *packages]):
        install = ["apt-get", *options, "install", "-y", *wanted]
        try:
            run(*install, "--download-only")
        except SandboxError:  # its lists may be of last year
            run("apt-get", "-q", "update")
            run(*install, "--download-only")
        names |= {line.split()[1] for line in run(*install, "--simulate").splitlines() if line.startswith("Inst ")}
    names -= set(names_of(packages))
    for name in names:
        found = max(glob.glob(f"{cache}/{name}_*.deb"), key=os.path.getmtime, default=None)
        if not found:
            raise SandboxError(f"apt did not download {name}")
        shutil.copy(found, f"{work}/debian")
    shutil.rmtree(f"{work}/apt")


def _index(directory):
    index = subprocess.run(["dpkg-scanpackages", "-m", "."], cwd=directory, capture_output=True, check=True).stdout
    with open(f"{directory}/Packages", "wb") as f:
        f.write(index)
    # Without a checksum in there, apt forgets the index at the next update.
    write_file(f"{directory}/Release", f"Suite: test\nSHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n")


def make(work, status, builds):
    """A disk image in work. builds: {name: directory with .deb files}; each is a repository of its own, "debian" has the rest."""
    tree = f"{work}/tree"
    os.makedirs(tree)
    found = {name: sorted(path for path in glob.glob(f"{directory}/*.deb") if "-dbgsym_" not in path) for name, directory in builds.items()}
    for name, packages in found.items():
        if not packages:
            raise SandboxError(f"{builds[name]} has no packages; build them with tools/package deb")
        os.makedirs(f"{tree}/{name}")
        for path in packages:
            shutil.copy(path, f"{tree}/{name}")
        _index(f"{tree}/{name}")
    _download(tree, status, [os.path.abspath(path) for path in next(iter(found.values()))])
    _index(f"{tree}/debian")
    machine.make_disk(tree, f"{work}/packages.ext4", "1G")
    return f"{work}/packages.ext4"


def _next(now, work):
    """Builds the packages of the version after those in now, of the tarball beside them."""
    tarballs = glob.glob(f"{now}/primus-*.tar.gz")
    if len(tarballs) != 1:
        raise SandboxError(f"{now} has no tarball to make a later version of; name its packages by --next")
    run("tar", "-xzf", tarballs[0], "-C", work, "--no-same-owner")
    tree = glob.glob(f"{work}/primus-*")[0]
    run(f"{machine.SOURCE}/tests/package/next.py", tree)
    run("tar", "-czf", f"{work}/next.tar.gz", "-C", work, os.path.basename(tree))
    run(f"{machine.SOURCE}/tools/package", "deb", "--tarball", f"{work}/next.tar.gz", "--output", f"{work}/packages")
    return f"{work}/packages"


def builds(now, later, work, log):
    """{"now": DIR, "next": DIR} of packages: those that are given, else those that are built, of HEAD and of the version after it."""
    if not now:
        log.say("building packages …")
        now = f"{work}/packages-now"
        run(f"{machine.SOURCE}/tools/package", "deb", "--output", now)
    if not later:
        log.say("building packages of the next version …")
        os.makedirs(f"{work}/next")
        later = _next(now, f"{work}/next")
    return {"now": now, "next": later}
