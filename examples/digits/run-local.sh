#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the example without Primus: one parameter server and three workers on this machine, each with its third of the
# training files on stdin. Needs python3-numpy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
port=${1:-23990}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
config() {
        printf '{"cluster":{"ps":["127.0.0.1:%s"],"worker":["-:1","-:1","-:1"]},"task":{"type":"%s","index":%s}}' "$port" "$1" "$2"
}
for index in 0 1 2; do
        awk -v i=$index 'FNR == 1 { n++ } n % 3 == i' "$here"/data/train-*.txt |
                TF_CONFIG=$(config worker $index) python3 "$here/worker.py" &
done
TF_CONFIG=$(config ps 0) python3 "$here/ps.py" "$here/heldout.txt"
wait
