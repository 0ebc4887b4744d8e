#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reads rows of CSV from stdin, a header line before those of each file, and says which river of them is the longest.
exec awk -F, '
        $1 == "river" || $2 == "river" { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { rows++ }
        $column["km"] + 0 > longest { longest = $column["km"] + 0; name = $column["river"] }
        END { printf "worker %s read %d rows; the longest river of them: %s\n", ENVIRON["PRIMUS_INDEX"], rows, name }'
