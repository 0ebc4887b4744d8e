#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page is what it says: what others wrote is as they published it, by the checksums in webd/page/vendor/readme.txt; nothing is
fetched from elsewhere; and texts become nothing but texts, which is what its Content-Security-Policy wants as well.

usage: vendored.py SOURCE
"""
import hashlib
import os
import re
import sys

# Names of formats, which nobody fetches.
NAMES = ("http://www.w3.org/2000/svg",)
# Modules that are not asked for ahead: the page's first one, and what is for Cockpit alone.
BESIDE = {"app.js", "reach-cockpit.js"}
# What makes code or elements of a text.
WAYS = r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|srcdoc|eval\s*\(|new Function|setTimeout\s*\(\s*['\"`])"


def vendored(top):
    """What is wrong with the files of others."""
    with open(os.path.join(top, "readme.txt"), encoding="utf-8") as f:
        known = dict(re.findall(r"(\S+/\S+)\s+([0-9a-f]{64})", f.read()))
    found = {os.path.relpath(os.path.join(folder, name), top) for folder, _, files in os.walk(top) for name in files}
    texts = {name for name in found if name.endswith(".txt")}
    for name in sorted(found - texts - set(known)):
        yield f"{name} is not in vendor/readme.txt"
    for name, checksum in known.items():
        if name not in found:
            yield f"{name} is in vendor/readme.txt alone"
            continue
        with open(os.path.join(top, name), "rb") as f:
            if hashlib.sha256(f.read()).hexdigest() != checksum:
                yield f"{name} is not what was published"
    for folder in {name.split("/")[0] for name in known}:
        if f"{folder}/license.txt" not in texts:
            yield f"{folder} has no license.txt"


def ours(path, text):
    for url in re.findall(r"https?://[^\s\"'`)]+", text):
        if url not in NAMES:
            yield f"{path} names {url}"
    for way in re.findall(WAYS, text):
        yield f"{path} uses {way}"
    if path.endswith(".html") and re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|javascript:", text):
        yield f"{path} has a script or a style in it"


def main(source):
    page = os.path.join(source, "webd/page")
    wrong, seen = list(vendored(os.path.join(page, "vendor"))), 0
    for folder, names, files in os.walk(page):
        names[:] = sorted(name for name in names if name != "vendor")
        for name in sorted(files):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                wrong += ours(os.path.relpath(path, source), f.read())
            seen += 1
    with open(os.path.join(page, "index.html"), encoding="utf-8") as f:
        preloaded = set(re.findall(r'<link rel="modulepreload" href="([^"]+)">', f.read()))
    modules = {os.path.relpath(os.path.join(folder, name), page) for folder, _, files in os.walk(page) for name in files if name.endswith(".js")} - BESIDE
    wrong += [f"webd/page/index.html: modulepreload of {name}: it is not there, or it is missing" for name in sorted(modules ^ preloaded)]
    if seen < 10:
        wrong.append("vendored.py: the page is not where it looks")
    print("\n".join(wrong) or f"{seen} files of the page")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
