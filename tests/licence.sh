#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every file of ours names its licence in its first lines.
#
# usage: licence.sh SOURCE
set -eu
cd "$1"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        list() { git ls-files --cached --others --exclude-standard; }
else
        list() { find . -type f ! -path './build*/*' ! -path './.git/*' | sed 's,^\./,,'; }
fi
status=0
for file in $(list | grep -v '[[:space:]]'); do
        [ -f "$file" ] || continue
        case $file in
        # The licence itself, prose, settings of tools, and data, whose origin and licence stand beside it.
        LICENSE | *.md | .gitignore | .gitattributes | .clang-format | .clang-tidy) continue ;;
        examples/*/data/* | examples/files/names/* | examples/digits/heldout.txt | tests/data/* | *.png | *.svg) continue ;;
        # Configurations as their authors wrote them, and traces: JSON knows no comments.
        tests/*.json | examples/upstream/* | examples/sim/*.json | examples/sim/*.csv) continue ;;
        # Formats that have no place for it; packaging/debian/copyright speaks for them. Scripts have.
        packaging/debian/*)
                [ "$(head -c 2 "$file")" = '#!' ] || continue
                licence=Apache-2.0
                ;;
        tests/fuzz/corpus/*) continue ;; # bytes for the fuzz targets
        bpf/*.bpf.c) licence='GPL-2.0-only OR BSD-2-Clause' ;;
        *) licence=Apache-2.0 ;;
        esac
        if ! head -n 5 "$file" | grep -qF "SPDX-License-Identifier: $licence"; then
                [ -s "$file" ] || continue
                echo "$file: no \"SPDX-License-Identifier: $licence\" in its first five lines" >&2
                status=1
        fi
done
exit $status
