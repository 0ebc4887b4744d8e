/* SPDX-License-Identifier: Apache-2.0 */
/* The link's memory. Invariant: times in the file are of the boot that the file names. */
#include "lib/unit/linkstate.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/unit/files.h"

#define LINK_FILE AGENT_DIR "/link"
#define MARGIN_MAX (10 * USEC_PER_SEC)
#define ALONE_MAX USEC_PER_SEC

uint64_t link_state_deadline(const struct link_state *s) {
        if (s->acked_boot == 0 || s->lost_usec == 0)
                return USEC_INFINITY;
        return usec_add(s->acked_boot, s->lost_usec - MIN(MARGIN_MAX, s->lost_usec / 3));
}

uint64_t link_state_alone(const struct link_state *s) {
        const uint64_t at = link_state_deadline(s);

        if (at == USEC_INFINITY)
                return at;
        return usec_add(at, MIN(ALONE_MAX, (usec_add(s->acked_boot, s->lost_usec) - at) / 3));
}

int boot_id_read(sd_id128_t *ret) {
        _cleanup_free_ char *text = NULL;

        if (read_file(BOOT_FILE, 64, &text, NULL) >= 0) {
                text[strcspn(text, "\n")] = 0;
                if (sd_id128_from_string(text, ret) >= 0)
                        return 0;
        }
        return sd_id128_get_boot(ret);
}

int link_state_load(const char *root, struct link_state *ret) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        sd_id128_t boot, now;
        struct link_state s = { 0 };
        bool same_boot = false;
        char *save;
        int r;

        *ret = s;
        if (asprintf(&path, "%s" LINK_FILE, root) < 0)
                return -ENOMEM;
        r = read_file(path, 4096, &text, NULL);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = boot_id_read(&now);
        if (r < 0)
                return r;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *value = strchr(line, '=');

                if (!value)
                        return -EBADMSG;
                *value++ = 0;
                if (strcmp(line, "BOOT") == 0)
                        same_boot = sd_id128_from_string(value, &boot) >= 0 && sd_id128_equal(boot, now);
                else if (strcmp(line, "CLUSTER") == 0)
                        r = sd_id128_from_string(value, &s.cluster);
                else if (strcmp(line, "TERM") == 0)
                        r = parse_u64(value, 0, UINT64_MAX, &s.term);
                else if (strcmp(line, "ACKED") == 0)
                        r = parse_u64(value, 0, UINT64_MAX, &s.acked_boot);
                else if (strcmp(line, "LOST_USEC") == 0)
                        r = parse_u64(value, 0, UINT64_MAX, &s.lost_usec);
                if (r < 0)
                        return -EBADMSG;
        }
        if (same_boot)
                *ret = s;
        return 0;
}

int link_state_save(const char *root, const struct link_state *s) {
        char boot[SD_ID128_STRING_MAX], cluster[SD_ID128_STRING_MAX], text[512];
        _cleanup_free_ char *path = NULL;
        sd_id128_t now;
        int r = boot_id_read(&now);

        if (r < 0)
                return r;
        if (asprintf(&path, "%s" LINK_FILE, root) < 0)
                return -ENOMEM;
        snprintf(text, sizeof(text),
                 "BOOT=%s\nCLUSTER=%s\nTERM=%" PRIu64 "\nACKED=%" PRIu64 "\nLOST_USEC=%" PRIu64 "\n",
                 sd_id128_to_string(now, boot), sd_id128_to_string(s->cluster, cluster), s->term,
                 s->acked_boot, s->lost_usec);
        return write_file_atomic(path, text, strlen(text), 0644,
                                 false); /* primus-alone reads it, as root without privileges */
}
