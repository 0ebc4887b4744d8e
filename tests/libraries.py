#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every library that an installed program is linked with is in the root tree of the test hosts: sandboxlib.rootfs.LIBRARIES lists
their packages, and a host cannot fetch one that was forgotten.

usage: libraries.py SOURCE BUILD
"""
import json
import os
import re
import subprocess
import sys

# What every Debian has, systemd's own among it, and the sanitizers', which the root tree has for builds with them.
ALWAYS = {"libc6", "libgcc-s1", "libsystemd0", "zlib1g", "libasan8", "libubsan1"}


def needed(path):
    out = subprocess.run(["readelf", "--dynamic", path], capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", out)


def names(path):
    """Those that dpkg may know a library's file by: the one from before /usr was merged, or the link's."""
    return [candidate for name in (path, os.path.realpath(path)) for candidate in (name.removeprefix("/usr"), name)]


def packages(paths):
    """The packages of libraries' files."""
    found = {}
    wanted = sorted({name for path in paths for name in names(path)})
    out = subprocess.run(["dpkg-query", "--search", *wanted], capture_output=True, text=True).stdout
    for line in out.splitlines():
        owner, _, name = line.partition(": ")
        found[name] = owner.split(":")[0]
    return {path: next((found[name] for name in names(path) if name in found), None) for path in paths}


def main(source, build):
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(source, "tools"))
    from sandboxlib import rootfs

    out = subprocess.run(["meson", "introspect", "--targets", build], capture_output=True, text=True, check=True).stdout
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    # The loader takes the first of a name; other architectures' come later.
    cache = dict(reversed(re.findall(r"^\s*(\S+) \(.*\) => (\S+)$", listed, re.M)))
    programs, seen = {}, 0
    for target in json.loads(out):
        if target["installed"] and target["type"] in ("executable", "shared library"):
            for path in filter(os.path.exists, target["filename"]):
                seen += 1
                for library in needed(path):
                    programs.setdefault(library, os.path.basename(path))
    if not seen:
        sys.exit("libraries.py: nothing is built")
    owners = packages([cache[library] for library in programs if library in cache])
    missing = [f"{program} is linked with {library}, of {found}, which sandboxlib.rootfs.LIBRARIES lacks: the test hosts would not have it"
               for library, program in sorted(programs.items()) if library in cache
               for found in [owners[cache[library]]] if found not in ALWAYS and found not in rootfs.LIBRARIES]
    if missing:
        sys.exit("\n".join(missing))


main(*sys.argv[1:])
