/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an interface is well. Invariant: it is judged by what it was; one that never worked is not missed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agentd/net/links.h"
#include "lib/base/clock.h"

#define WINDOW_USEC (60 * USEC_PER_SEC)
#define FLAP_WINDOW_USEC (600 * USEC_PER_SEC)
#define FLAPS 3u           /* within that */
#define ERRORS_MIN 100u    /* in a window; a cable that is plugged in makes some */
#define ERRORS_SHARE 1000u /* and one packet in so many */

char *format_mbps(uint64_t mbps, char *buf, size_t size) {
        if (mbps >= 1000 && mbps % 1000 == 0)
                snprintf(buf, size, "%" PRIu64 " Gbit/s", mbps / 1000);
        else if (mbps >= 1000)
                snprintf(buf, size, "%.1f Gbit/s", (double)mbps / 1000);
        else
                snprintf(buf, size, "%" PRIu64 " Mbit/s", mbps);
        return buf;
}

static void count_damage(struct link_memory *m, const struct link_facts *f, uint64_t now) {
        uint64_t packets = f->rx_packets + f->tx_packets, errors = f->rx_errors + f->tx_errors;

        if (m->window_boot > 0 && now - m->window_boot < WINDOW_USEC)
                return;
        if (m->window_boot > 0 && packets >= m->packets && errors >= m->errors) {
                uint64_t bad = errors - m->errors, all = packets - m->packets + bad;
                bool damaged = bad >= ERRORS_MIN && bad >= all / ERRORS_SHARE;
                if (damaged)
                        snprintf(m->damage, sizeof(m->damage),
                                 "%" PRIu64 " of %" PRIu64 " packets damaged within %" PRIu64 " s", bad, all,
                                 (now - m->window_boot) / USEC_PER_SEC);
                m->bad_windows = damaged ? m->bad_windows + 1 : 0;
        }
        m->window_boot = now;
        m->packets = packets;
        m->errors = errors;
}

static void count_flaps(struct link_memory *m, const struct link_facts *f, uint64_t now) {
        if (m->flaps_boot > 0 && f->carrier_downs - m->downs >= FLAPS && f->carrier_downs >= m->downs)
                m->flaps = true;
        else if (m->flaps_boot > 0 && now - m->flaps_boot >= FLAP_WINDOW_USEC)
                m->flaps = false;
        if (m->flaps_boot == 0 || now - m->flaps_boot >= FLAP_WINDOW_USEC || f->carrier_downs < m->downs) {
                m->flaps_boot = now;
                m->downs = f->carrier_downs;
        }
}

enum link_grade link_judge(struct link_memory *m, const struct link_facts *f, bool gone, uint64_t now,
                           char *text, size_t size) {
        bool was_up = m->was_up || f->carrier_ups > 0;

        *text = 0;
        count_damage(m, f, now);
        count_flaps(m, f, now);
        if (!gone && f->up && f->carrier)
                m->was_up = true;
        else if (!was_up)
                return LINK_GOOD; /* a port without a cable */
        if (gone) {
                snprintf(text, size, "the interface is gone");
                return LINK_DOWN;
        }
        if (!f->up) {
                snprintf(text, size, "switched off ('ip link set %s up' switches it on)", f->name);
                return LINK_OFF;
        }
        if (!f->carrier) {
                snprintf(text, size, "no carrier: look at cable, transceiver and switch port");
                return LINK_DOWN;
        }
        if (m->flaps) {
                snprintf(text, size, "comes and goes: lost its carrier %" PRIu32 " times within 10 minutes",
                         f->carrier_downs - m->downs >= FLAPS ? f->carrier_downs - m->downs : FLAPS);
                return LINK_FLAPS;
        }
        if (m->bad_windows > 0) {
                snprintf(text, size, "%s", m->damage);
                return LINK_DAMAGED;
        }
        return LINK_GOOD;
}

enum link_grade link_judge_speed(struct link_memory *m, const struct link_facts *f, char *text, size_t size) {
        char now[32], other[32];
        uint64_t best = m->best_mbps;

        *text = 0;
        if (!f->up || !f->carrier || f->mbps == 0)
                return LINK_GOOD;
        if (f->mbps > best)
                m->best_mbps = f->mbps;
        if (f->mbps < best) {
                snprintf(text, size, "%s, and was %s", format_mbps(f->mbps, now, sizeof(now)),
                         format_mbps(best, other, sizeof(other)));
                return LINK_SLOWER;
        }
        if (f->mbps < f->mbps_max) {
                snprintf(text, size, "%s, and can be %s", format_mbps(f->mbps, now, sizeof(now)),
                         format_mbps(f->mbps_max, other, sizeof(other)));
                return LINK_SLOW;
        }
        return LINK_GOOD;
}
