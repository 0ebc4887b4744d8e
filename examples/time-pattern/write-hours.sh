#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes three hours of data, a second apart, each with its marker when it is complete.
top=/var/tmp/primus-hours
for hour in 20261120/22 20261120/23 20261121/00; do
        mkdir -p "$top/$hour"
        seq 1000 > "$top/$hour/part-0"
        sleep 1
        touch "$top/$hour/_SUCCESS"
done < /dev/null
