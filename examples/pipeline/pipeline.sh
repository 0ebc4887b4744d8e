#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two parts side by side, wherever there is room, and what is made of them. It fails with the first that fails.
set -e
cd / # children begin in the directory they are submitted from: one that every host has

part() {
    name=$1
    shift
    primusctl run --detach --parsable --with-parent --no-env --name="$name" --cpus=0.1 --mem=64M -- "$@"
}

left=$(part left sh -c 'sleep 1; echo the left half')
right=$(part right sh -c 'sleep 1; echo the right half')
primusctl wait "$left" "$right"
primusctl logs "$left"
primusctl logs "$right"
primusctl run --with-parent --no-env --name=whole --cpus=0.1 --mem=64M -- echo the whole
