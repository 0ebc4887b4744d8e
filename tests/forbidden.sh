#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The daemons never wait inside their loop: on a bus that is pumped through TLS by that same loop such a call never comes
# back, on any other it stalls everybody else.
#
# usage: forbidden.sh SOURCE
set -eu
cd "$1"
if grep -rnE '\bsd_bus_((call|call_method|call_methodv|flush|default_flush_close)[[:space:]]*\(|flush_close_unrefp?\b)' \
        --include='*.[ch]' masterd agentd lib/wire | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/\*|\*|//)'; then
        echo 'forbidden.sh: a daemon may not wait for a bus; use sd_bus_call_async() or sd_bus_send()' >&2
        exit 1
fi
