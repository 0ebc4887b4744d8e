#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The RPMs have what the Debian packages have, in the package of the same purpose: packaging/primus.spec's %files against
packaging/debian/*.install. And packaging/files.list has each document, which is seen otherwise only when packages are built.

usage: package-lists.py SOURCE
"""
import os
import re
import sys

# Debian's name -> the spec's.
PACKAGES = {"primus-master": "master", "primus-agent": "agent", "primus-tools": "tools", "primus-web": "web", "cockpit-primus": "-n cockpit-%{name}", "libprimus1": "libs", "libprimus-dev": "devel",
            "python3-primus": "-n python3-%{name}", "python3-primus-determined": "-n python3-%{name}-determined",
            "python3-primus-parl": "-n python3-%{name}-parl"}
MACROS = {"_unitdir": "usr/lib/systemd/system", "_userunitdir": "usr/lib/systemd/user", "_prefix": "usr", "_sysconfdir": "etc", "_sysusersdir": "usr/lib/sysusers.d",
          "_tmpfilesdir": "usr/lib/tmpfiles.d", "_datadir": "usr/share", "_mandir": "usr/share/man", "_bindir": "usr/bin",
          "_docdir": "usr/share/doc", "_includedir": "usr/include", "_libdir": "usr/lib/*", "python3_sitelib": "usr/lib/python3/dist-packages"}


def normal(path):
    """Of a directory, a pattern for all that is in it, and a page that may be compressed, the same is written."""
    path = path.lstrip("/").rstrip("/").removesuffix("/*")
    if path.startswith(("usr/share/man/", "usr/lib/systemd/", "usr/lib/*/libprimus.so.1")):
        path = path.rstrip("*")
    # zsh looks elsewhere on Fedora.
    return path.replace("share/zsh/vendor-completions", "share/zsh/site-functions").removesuffix("/_primusctl")


def debian(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    # Two words: a file of packaging/debian itself, needrestart's.
    return {normal(re.sub("^lib/", "usr/lib/", words[0])) for words in lines if len(words) == 1}


def fedora(spec, name):
    section = re.search(r"^%files " + re.escape(name) + r"\n(.*?)(?=^%(?:files|changelog))", spec, re.M | re.S)
    result = set()
    for line in section[1].splitlines() if section else []:
        words = line.split()
        # Directories that are shared, and the licence, which Debian has in one file of its own.
        if not words or words[0].startswith("#") or words[0] in ("%license", "%exclude") or words[:2] in (
                ["%dir", "%{_sysconfdir}/primus"], ["%dir", "%{_prefix}/lib/primus"], ["%dir", "%{_datadir}/primus"], ["%dir", "%{_prefix}/lib/systemd/journald.conf.d"]):
            continue
        result.add(normal(re.sub(r"%\{(\w+)\}", lambda m: MACROS.get(m[1], m[0]), words[-1])))
    return result


def unlisted(source):
    """Documents that a package has, and packaging/files.list has not."""
    with open(os.path.join(source, "packaging/files.list"), encoding="utf-8") as f:
        listed = {line.split()[-1] for line in f if line.strip()}
    for folder, _, files in os.walk(os.path.join(source, "docs")):
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), source)
            if name.endswith(".md") and f"/usr/share/doc/primus/{path}" not in listed:
                yield path


def main(source):
    with open(os.path.join(source, "packaging/primus.spec"), encoding="utf-8") as f:
        spec = f.read()
    status = 0
    for package, name in PACKAGES.items():
        deb, rpm = debian(os.path.join(source, f"packaging/debian/{package}.install")), fedora(spec, name)
        # A pattern covers what begins with it.
        for path in sorted(deb - rpm):
            if not any(other.startswith(path + ".") for other in rpm):
                print(f"packaging/primus.spec: '%files {name}' lacks {path}, which {package}.install has", file=sys.stderr)
                status = 1
        for path in sorted(rpm - deb):
            if not any(path.startswith(other + ".") for other in deb):
                print(f"packaging/debian/{package}.install lacks {path}, which '%files {name}' has", file=sys.stderr)
                status = 1
    for path in unlisted(source):
        print(f"packaging/files.list lacks {path} (tests/package/files.py --write, when the packages are built)", file=sys.stderr)
        status = 1
    return status


sys.exit(main(*sys.argv[1:]))
