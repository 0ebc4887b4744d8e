/* SPDX-License-Identifier: Apache-2.0 */
/* Disks and the clock. Invariant: no judgement is passed on what is not known. */
#include "agentd/device/sensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"

#define TENTH (100 * USEC_PER_MSEC)
#define FAR_OFF (60 * USEC_PER_SEC) /* no timeout that is told as a date works any more */

/* Of the file system itself, not of the mount: in the daemon's own namespace nearly everything is read-only.
 */
static bool is_read_only(dev_t device) {
        _cleanup_free_ char *text = NULL;
        unsigned major_number, minor_number;
        char *save, *options;

        if (read_file("/proc/self/mountinfo", 1 << 20, &text, NULL) < 0)
                return false;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2 ||
                    makedev(major_number, minor_number) != device)
                        continue;
                /* "... - ext4 /dev/sda1 rw,errors=remount-ro" */
                options = strstr(line, " - ");
                options = options ? strrchr(options, ' ') + 1 : NULL;
                return options && strncmp(options, "ro", 2) == 0 && (!options[2] || options[2] == ',');
        }
        return false;
}

int disk_read(const char *root, const char *path, struct disk_facts *ret) {
        _cleanup_free_ char *full = NULL;
        struct statvfs s;
        struct stat st;

        if (asprintf(&full, "%s%s", root, path) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        if (stat(full, &st) < 0 || statvfs(full, &s) < 0)
                return -errno;
        *ret = (struct disk_facts){ .device = st.st_dev,
                                    .size = (uint64_t)s.f_blocks * s.f_frsize,
                                    .available = (uint64_t)s.f_bavail * s.f_frsize,
                                    .files = s.f_files,
                                    .files_left = s.f_favail,
                                    .read_only = is_read_only(st.st_dev) };
        return 0;
}

static uint64_t wanted(const struct room *r, uint64_t size) {
        return MIN(size / 100 * r->percent, r->bytes);
}

/* The share of inodes alone: there is no number of them that is few everywhere. */
static enum condition_severity judge_one(uint64_t left, uint64_t warn, uint64_t drain) {
        return left < drain ? CONDITION_DRAIN : left < warn ? CONDITION_WARN : CONDITION_FINE;
}

enum condition_severity disk_judge(const struct disk_facts *d, const struct room *warn,
                                   const struct room *drain, enum condition_severity worst, char *text,
                                   size_t size) {
        enum condition_severity bytes, files;
        char left[FORMAT_SIZE_MAX], all[FORMAT_SIZE_MAX];

        *text = 0;
        if (d->read_only) {
                snprintf(text, size, "read-only: the kernel makes it so after an error ('dmesg' says which)");
                return MIN(CONDITION_DRAIN, worst);
        }
        if (d->size == 0)
                return CONDITION_FINE;
        bytes = judge_one(d->available, wanted(warn, d->size), wanted(drain, d->size));
        files = d->files == 0 ? CONDITION_FINE
                              : judge_one(d->files_left, d->files / 100 * warn->percent,
                                          d->files / 100 * drain->percent);
        if (bytes == CONDITION_FINE && files == CONDITION_FINE)
                return CONDITION_FINE;
        if (bytes >= files)
                snprintf(text, size, "%" PRIu64 "%% full, %s of %s left",
                         (d->size - MIN(d->available, d->size)) / (d->size / 100 ?: 1),
                         format_size(d->available, left, sizeof(left)),
                         format_size(d->size, all, sizeof(all)));
        else
                snprintf(text, size, "%" PRIu64 " of %" PRIu64 " inodes left", d->files_left, d->files);
        return MIN(MAX(bytes, files), worst);
}

void clock_note(struct clock_watch *w, uint64_t master_real, uint64_t own_real, uint64_t rtt_usec) {
        w->samples[w->n++ % CLOCK_SAMPLES] =
                (struct clock_sample){ .offset_usec = (int64_t)(master_real + rtt_usec / 2 - own_real),
                                       .rtt_usec = rtt_usec };
}

bool clock_best(const struct clock_watch *w, struct clock_sample *ret) {
        const struct clock_sample *best = NULL;

        for (unsigned i = 0; i < MIN(w->n, CLOCK_SAMPLES); i++)
                if (!best || w->samples[i].rtt_usec < best->rtt_usec)
                        best = w->samples + i;
        if (!best)
                return false;
        *ret = *best;
        return true;
}

enum condition_severity clock_judge(const struct clock_watch *w, uint64_t limit_usec, char *text,
                                    size_t size) {
        char duration[FORMAT_DURATION_MAX];
        struct clock_sample s;
        uint64_t off;

        *text = 0;
        /* One answer that was late on its way proves nothing. */
        if (w->n < CLOCK_SAMPLES / 2 || !clock_best(w, &s))
                return CONDITION_FINE;
        off = (uint64_t)llabs(s.offset_usec);
        if (usec_sub(off, s.rtt_usec / 2) <= limit_usec)
                return CONDITION_FINE;
        snprintf(text, size, "%s %s masterd's; is a time service running ('timedatectl')?",
                 format_duration((off + TENTH / 2) / TENTH * TENTH, duration, sizeof(duration)),
                 s.offset_usec > 0 ? "behind" : "ahead of");
        return off > FAR_OFF ? CONDITION_DRAIN : CONDITION_WARN;
}
