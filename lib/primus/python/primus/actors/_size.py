# SPDX-License-Identifier: Apache-2.0
"""Sizes as people write them."""
import re

SUFFIXES = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def size(text):
    """Bytes: an int, or a text as "512M"."""
    if isinstance(text, int):
        return text
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)i?B?", text)
    if not found:
        raise ValueError(f"{text!r} is no size: 512M, 2G, or a number of bytes")
    return int(float(found[1]) * (1 << SUFFIXES[found[2]]))


def text(bytes):
    """As people read it: 512M, 1.5G."""
    suffix, shift = max((pair for pair in SUFFIXES.items() if bytes >> pair[1]), key=lambda pair: pair[1], default=("", 0))
    return f"{bytes / (1 << shift):.4g}{suffix}"
