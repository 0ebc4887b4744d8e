# SPDX-License-Identifier: Apache-2.0
"""RPMs on hosts: a root tree with rpm and dnf in it, a repository, and a package that stands for what is Fedora's.

The tree is Debian's, since that is what can be had here. What our packages require there is provided by one package, fedora-debian,
which has no file but systemd's update helper, and
    - provides every library that is in the tree, with the versions of symbols that rpm's own tool finds in it, and for the few
      packages that are required by name, that name with the version of Debian's package
    - does by file triggers what Fedora's systemd and glibc do when files of a certain kind come and go: units are loaded anew and
      restarted where that was asked for, users and directories made, the loader's cache written.
So dependencies are resolved and scriptlets run, by rpm and dnf themselves, against what is really there.
"""
import glob
import os
import re
import shutil
import subprocess

import tree

PACKAGES = tree.PACKAGES + ["rpm", "dnf", "pkgconf"]

# Fedora's name -> Debian's.
NAMES = {
    "systemd": "systemd", "dbus": "dbus", "polkit": "polkitd", "gnutls": "libgnutls30", "libarchive": "libarchive13",
    "libsmartcols": "libsmartcols1", "libcurl": "libcurl3-gnutls", "librdkafka": "librdkafka1", "python3": "python3",
    "python3-pyyaml": "python3-yaml", "python3-cloudpickle": "python3-cloudpickle", "openssl": "openssl",
}

STANDS_FOR_FEDORA = """
Name: fedora-debian
Version: 1
Release: 1
Summary: What is in this Debian tree, under Fedora's names
License: Apache-2.0
Provides: /bin/sh
Provides: /usr/bin/pkg-config
Provides: cockpit-bridge
Provides: rtld(GNU_HASH)
%(provides)s
%%description
%%{summary}.
%%install
install -D -m 0755 %(helper)s %%{buildroot}/usr/lib/systemd/systemd-update-helper
install -D -m 0644 %(preset)s %%{buildroot}/usr/lib/systemd/system-preset/99-default-disable.preset
%%files
/usr/lib/systemd/systemd-update-helper
/usr/lib/systemd/system-preset/99-default-disable.preset
%%transfiletriggerin -P 1000700 -- /usr/lib/sysusers.d
systemd-sysusers || :
%%transfiletriggerin -P 1000500 -- /usr/lib/tmpfiles.d
systemd-tmpfiles --create || :
%%transfiletriggerin -P 900900 -- /usr/lib/systemd/system /etc/systemd/system
/usr/lib/systemd/systemd-update-helper system-reload-restart || :
%%transfiletriggerpostun -P 1000100 -- /usr/lib/systemd/system /etc/systemd/system
/usr/lib/systemd/systemd-update-helper system-reload-restart || :
%%transfiletriggerin -P 2000000 -- /usr/lib
ldconfig
"""

# The verbs that primus.spec's scriptlets use, with the meaning of systemd's own helper.
UPDATE_HELPER = """#!/bin/sh
set -eu
verb=$1
shift
case $verb in
install-system-units) systemctl --no-reload preset "$@" ;;
remove-system-units) systemctl --no-reload disable --now --quiet "$@" ;;
mark-restart-system-units)
        for unit; do
                ! systemctl --quiet is-active "$unit" || systemctl set-property "$unit" Markers=+needs-restart
        done
        ;;
system-reload-restart)
        systemctl daemon-reload
        systemctl reload-or-restart --marked
        ;;
*) exit 1 ;;
esac
"""


def root():
    return tree.ensure(PACKAGES)


def _rpmbuild(work, spec, output):
    for directory in ("BUILD", "tmp"):
        os.makedirs(f"{work}/{directory}", exist_ok=True)
    subprocess.run(["rpmbuild", "-bb", "--quiet", "--nodeps", "--define", f"_topdir {work}", "--define", f"_tmppath {work}/tmp",
                    "--define", f"_rpmdir {output}", "--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
                    "--define", "_build_id_links none", "--define", "_binary_payload w1.zstdio", "--define", "__os_install_post %{nil}",
                    "--define", "_buildhost localhost", spec],
                   check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _provides(base):
    libraries = [path for path in glob.glob(f"{base}/usr/lib/x86_64-linux-gnu/*.so*") + glob.glob(f"{base}/usr/lib64/*.so*")
                 if os.path.isfile(path)]
    # Its status is 1 where a file is none of its kind.
    found = subprocess.run(["/usr/lib/rpm/elfdeps", "--provides"], input="\n".join(libraries), capture_output=True, text=True)
    lines = set(found.stdout.split("\n")) - {""}
    versions = subprocess.run(["dpkg-query", f"--admindir={base}/var/lib/dpkg", "-W", "-f", "${Package} ${Version}\n", *NAMES.values()],
                              capture_output=True, text=True, check=True).stdout
    known = dict(line.split() for line in versions.splitlines())
    for name, package in NAMES.items():
        version = re.match(r"(?:\d+:)?([0-9.]+)", known[package])[1].rstrip(".")
        lines |= {f"{name} = {version}", f"{name}(x86-64) = {version}"}
    return sorted(lines)


class Repository:
    """What dnf reads. `packages`: a directory with our RPMs."""

    def __init__(self, directory, packages, work):
        self.directory, self.work = str(directory), str(work)
        self.files = sorted(glob.glob(f"{packages}/*.x86_64.rpm") + glob.glob(f"{packages}/*.noarch.rpm"))
        assert self.files, f"no RPMs in {packages}; 'tools/package rpm' makes them"
        for path in self.files:
            shutil.copy(path, self.directory)
        for name, text in (("helper", UPDATE_HELPER), ("preset", "disable *\n")):
            with open(f"{self.work}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        spec = STANDS_FOR_FEDORA % {"provides": "\n".join(f"Provides: {line}" for line in _provides(root())),
                                    "helper": f"{self.work}/helper", "preset": f"{self.work}/preset"}
        with open(f"{self.work}/fedora-debian.spec", "w", encoding="utf-8") as f:
            f.write(spec)
        _rpmbuild(f"{self.work}/fedora", f"{self.work}/fedora-debian.spec", self.directory)
        self.index()

    def index(self):
        subprocess.run(["createrepo_c", "--quiet", self.directory], check=True)

    def publish_next(self):
        """Adds release 2 of everything, with the files of release 1: the same spec, which copies instead of building."""
        files = f"{self.work}/files"
        os.makedirs(files)
        for path in self.files:
            unpacked = subprocess.run(["rpm2cpio", path], check=True, capture_output=True).stdout
            subprocess.run(["cpio", "-idm", "--quiet"], cwd=files, input=unpacked, check=True)
        with open(os.path.join(tree.SOURCE, "packaging/primus.spec"), encoding="utf-8") as f:
            spec = f.read()
        head, rest = spec.split("\n%prep\n", 1)
        scripts = rest[rest.index("\n%check\n"):]
        assert re.search(r"^Release: *1%", head, re.M)
        head = re.sub(r"^Release: *1%", "Release: 2%", head, flags=re.M)
        # %license takes its file from where it was built.
        licence = os.path.join(tree.SOURCE, "LICENSE")
        body = (f"\n%prep\ncp {licence} .\n%install\nmkdir -p %{{buildroot}}\ncp -a {files}/. %{{buildroot}}\n"
                "rm -rf %{buildroot}/usr/share/licenses\n")
        with open(f"{self.work}/next.spec", "w", encoding="utf-8") as f:
            f.write(f"%{{load:{tree.SOURCE}/packaging/rpm/macros.debian}}\n" + head + body + scripts)
        _rpmbuild(f"{self.work}/next", f"{self.work}/next.spec", self.directory)
        self.index()
