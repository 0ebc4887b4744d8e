#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What must not be written, since nobody would see it in time.
#
# The daemons never wait inside their loop: on a bus that is pumped through TLS by that same loop such a call never comes
# back, on any other it stalls everybody else. agentd/log/journal.c is what the threads of a log's readers
# run, with a bus of that one call's own.
#
# usage: forbidden.sh SOURCE
set -eu
cd "$1"
if grep -rnE '\bsd_bus_((call|call_method|call_methodv|flush|default_flush_close)[[:space:]]*\(|flush_close_unrefp?\b)' \
        --include='*.[ch]' masterd agentd starter lib/wire |
        grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/\*|\*|//)|^agentd/log/journal\.c:[0-9]+:.* sd_bus_call\(bus, call, timeout_usec,'; then
        echo 'forbidden.sh: a daemon may not wait for a bus; use sd_bus_call_async() or sd_bus_send()' >&2
        exit 1
fi
# Nor do they look at each byte of what they pass over.
if grep -rnE '\bsd_bus_message_skip[[:space:]]*\(' --include='*.[ch]' masterd agentd starter lib |
        grep -vE '^lib/wire/skip\.[ch]:'; then
        echo 'forbidden.sh: what nobody reads is passed over by message_skip() of lib/wire/skip.h' >&2
        exit 1
fi
# Text of a unit's properties passes the guard of property.c: systemd writes some of it into files as it is. What the others
# append themselves is the unit's name, numbers, and bytes of a name that was checked.
makers=$(grep -lE 'property_(string|open|u64)' -r starter --include='*.c' | grep -v '/property\.c$')
# shellcheck disable=SC2086
if grep -nE 'sd_bus_message_append(_strv|_string|_basic)?[[:space:]]*\([^,]*, *("[^"]*\(sv\)|'"'[sog]'"'|"[^"]*s[^"]*", *[^u])|sd_bus_message_append_strv' $makers |
        grep -vE '"(ss|sb|s)", *(unit|r->unit|names->unit|job_slice_name\(|e->unit)|"a\(sa\(sv\)\)", 0|NUMAPolicy|SocketBindDeny'; then
        echo 'forbidden.sh: text of a unit is appended by property_string() and its like alone' >&2
        exit 1
fi
