#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C file that has the contents of object files: embed.py OUTPUT NAME=FILE …"""
import sys


def main():
    output, *objects = sys.argv[1:]
    parts = ['/* Made by bpf/embed.py. */\n#include "starter/observe/images.h"\n']
    for name, path in (word.split("=", 1) for word in objects):
        with open(path, "rb") as f:
            data = f.read()
        rows = (",".join(map(str, data[i:i + 24])) for i in range(0, len(data), 24))
        parts.append(f"static const unsigned char {name}_data[] __attribute__((aligned(8))) = {{\n" + ",\n".join(rows) + "\n};\n"
                     f"const struct probe_image probe_image_{name} = {{ \"{name}\", {name}_data, sizeof({name}_data) }};\n")
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(parts))


if __name__ == "__main__":
    main()
