/* SPDX-License-Identifier: Apache-2.0 */
/* tar shards as WebDataset writes them: members whose names are the same up to the first dot of their last
 * part are one record. Reads ustar, old tar, and the long names of pax and GNU; directories, links and
 * devices belong to the record that they lie in, but make none. Blocks of zeros, which end an archive, are
 * padding: archives may be concatenated. Invariant: a header counts only with the right checksum, and the
 * archive has to be ended, so that one which was cut between two members is noticed. */
#include <errno.h>
#include <string.h>

#include "lib/record/formats.h"

#define BLOCK 512u
#define NAME_MAX_BYTES 4096u

/* Where the fields of a header lie. */
enum {
        AT_NAME = 0,
        NAME_SIZE = 100,
        AT_SIZE = 124,
        AT_CHECKSUM = 148,
        AT_TYPE = 156,
        AT_MAGIC = 257,
        AT_PREFIX = 345,
        PREFIX_SIZE = 155,
};

/* A member with what precedes it: long names, attributes. */
struct member {
        const char *name; /* in the archive; prefix stands before it */
        size_t name_size;
        const char *prefix;
        size_t prefix_size;
        size_t data_at, data_size; /* from where the walk began */
        size_t end;                /* with its padding */
        bool regular;
};

static size_t bounded(const uint8_t *p, size_t max) {
        const uint8_t *nul = memchr(p, 0, max);

        return nul ? (size_t)(nul - p) : max;
}

static bool all_zero(const uint8_t *p) {
        return p[0] == 0 && memcmp(p, p + 1, BLOCK - 1) == 0;
}

/* Octal, or binary with the top bit set. */
static int read_number(const uint8_t *p, size_t n, uint64_t *ret) {
        uint64_t v = 0;
        size_t i = 0;

        if (p[0] == 0x80) {
                for (i = 1; i < n; i++) {
                        if (v >> 48)
                                return -EBADMSG;
                        v = v << 8 | p[i];
                }
                *ret = v;
                return 0;
        }
        while (i < n && p[i] == ' ')
                i++;
        for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
                v = v << 3 | (uint64_t)(p[i] - '0');
        if (i < n && p[i] != ' ' && p[i] != 0)
                return -EBADMSG;
        *ret = v;
        return 0;
}

static bool checksum_right(const uint8_t *p) {
        const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
        uint64_t said, lanes = 0, sum = 8 * ' ';

        /* Four lanes of 16 bits, of which each takes 128 bytes: 8 bytes at once, for headers are half of
         * small members. */
        for (size_t i = 0; i < BLOCK; i += sizeof(uint64_t)) {
                uint64_t word;

                memcpy(&word, p + i, sizeof(word));
                lanes += (word & even) + (word >> 8 & even);
        }
        for (unsigned k = 0; k < 4; k++)
                sum += lanes >> 16 * k & 0xffff;
        for (size_t i = AT_CHECKSUM; i < AT_CHECKSUM + 8; i++)
                sum -= p[i];
        return read_number(p + AT_CHECKSUM, 8, &said) >= 0 && said == sum;
}

/* "LENGTH KEY=VALUE\n" again and again. Takes path and size; 0 or -EBADMSG. */
static int pax_read(const uint8_t *p, size_t size, struct member *m, uint64_t *size_of_next, bool *has_size) {
        while (size > 0) {
                size_t length = 0, i = 0, value;
                const uint8_t *equals;

                for (; i < size && i < 10 && p[i] >= '0' && p[i] <= '9'; i++)
                        length = length * 10 + (size_t)(p[i] - '0');
                if (i == 0 || i >= size || p[i] != ' ' || length <= i + 1 || length > size ||
                    p[length - 1] != '\n')
                        return -EBADMSG;
                equals = memchr(p + i + 1, '=', length - i - 1);
                if (!equals)
                        return -EBADMSG;
                value = (size_t)(equals - p) + 1;
                if (value - i - 2 == 4 && memcmp(p + i + 1, "path", 4) == 0) {
                        m->name = (const char *)p + value;
                        m->name_size = length - 1 - value;
                        if (m->name_size > NAME_MAX_BYTES)
                                return -EBADMSG;
                } else if (value - i - 2 == 4 && memcmp(p + i + 1, "size", 4) == 0) {
                        uint64_t v = 0;

                        for (size_t at = value; at < length - 1; at++) {
                                if (p[at] < '0' || p[at] > '9' || v > RECORD_LENGTH_MAX)
                                        return -EBADMSG;
                                v = v * 10 + (uint64_t)(p[at] - '0');
                        }
                        *size_of_next = v;
                        *has_size = true;
                }
                p += length;
                size -= length;
        }
        return 0;
}

static void name_take(const uint8_t *header, struct member *m) {
        m->name = (const char *)header + AT_NAME;
        m->name_size = bounded(header + AT_NAME, NAME_SIZE);
        /* GNU's old format has other things where ustar has the prefix. */
        if (memcmp(header + AT_MAGIC, "ustar\0", 6) == 0) {
                m->prefix = (const char *)header + AT_PREFIX;
                m->prefix_size = bounded(header + AT_PREFIX, PREFIX_SIZE);
        }
}

/* The member at buf + at, which is no block of zeros. 1; 0: more is needed; -EBADMSG. */
static int member_read(const uint8_t *buf, size_t at, size_t size, struct member *ret, const char **ret_why) {
        struct member m = {};
        uint64_t next_size = 0;
        bool has_size = false, has_name = false;

        for (;;) {
                const uint8_t *h = buf + at;
                uint64_t length, padded;
                char type;

                if (size - at < BLOCK)
                        return 0;
                if (!checksum_right(h)) {
                        *ret_why = "corrupt tar: the checksum of a header is wrong";
                        return -EBADMSG;
                }
                type = (char)h[AT_TYPE];
                if (read_number(h + AT_SIZE, 12, &length) < 0) {
                        *ret_why = "corrupt tar: the size of a member is no number";
                        return -EBADMSG;
                }
                m.regular = type == '0' || type == 0 || type == '7';
                if (m.regular && has_size)
                        length = next_size;
                if (length > RECORD_LENGTH_MAX) {
                        *ret_why = "a member of the tar is longer than 1 GiB";
                        return -EBADMSG;
                }
                /* links, devices, directories and pipes have no contents, whatever their size says */
                padded = strchr("123456", type) && type ? 0 : (length + BLOCK - 1) / BLOCK * BLOCK;
                if (size - at - BLOCK < padded)
                        return 0;
                m.data_at = at + BLOCK;
                m.data_size = padded == 0 ? 0 : (size_t)length;
                m.end = at = m.data_at + (size_t)padded;
                switch (type) {
                case 'x':
                case 'g': {
                        struct member ignored = {};
                        uint64_t none;
                        bool no;
                        int r = type == 'x' ? pax_read(h + BLOCK, m.data_size, &m, &next_size, &has_size)
                                            : pax_read(h + BLOCK, m.data_size, &ignored, &none, &no);

                        if (r < 0) {
                                *ret_why = "corrupt tar: the attributes of a member cannot be read";
                                return r;
                        }
                        has_name = m.name != NULL;
                        continue;
                }
                case 'L':
                        m.name = (const char *)h + BLOCK;
                        m.name_size = bounded(h + BLOCK, m.data_size);
                        if (m.name_size > NAME_MAX_BYTES) {
                                *ret_why = "corrupt tar: the name of a member is longer than 4096 bytes";
                                return -EBADMSG;
                        }
                        has_name = true;
                        continue;
                case 'K':
                        continue;
                case 'S':
                case 'M':
                        *ret_why = "the tar has sparse members or goes over several volumes, which cannot be "
                                   "read";
                        return -EBADMSG;
                default:
                        break;
                }
                if (!has_name)
                        name_take(h, &m);
                *ret = m;
                return 1;
        }
}

/* How much of the name names the record. */
static void key_of(const struct member *m, size_t *ret_prefix, size_t *ret_name) {
        const char *slash = memrchr(m->name, '/', m->name_size);
        size_t base = slash ? (size_t)(slash - m->name) + 1 : 0;
        const char *dot = memchr(m->name + base, '.', m->name_size - base);

        *ret_prefix = m->prefix_size;
        *ret_name = dot ? (size_t)(dot - m->name) : m->name_size;
}

static bool same_record(const struct member *a, const struct member *b) {
        size_t ap, an, bp, bn;

        key_of(a, &ap, &an);
        key_of(b, &bp, &bn);
        return ap == bp && an == bn && (ap == 0 || memcmp(a->prefix, b->prefix, ap) == 0) &&
               (an == 0 || memcmp(a->name, b->name, an) == 0);
}

int tar_next(const uint8_t *buf, size_t size, bool last, struct record *ret, const char **ret_why) {
        struct member first = {}, m;
        size_t at = 0, begin = 0, end = 0;
        bool any = false, ended = false;

        for (;;) {
                int r;

                if (size - at >= BLOCK && all_zero(buf + at)) {
                        at += BLOCK;
                        if (!any)
                                begin = at;
                        ended = true;
                        continue;
                }
                if (at == size && last)
                        break;
                /* What is wrong may belong to the record that has begun, so nothing of it is handed out. */
                r = member_read(buf, at, size, &m, ret_why);
                if (r < 0)
                        return r;
                if (r == 0 && last) {
                        *ret_why = "truncated: the data ends within a member of the tar";
                        return -EBADMSG;
                }
                if (r == 0)
                        return 0;
                if (any && (ended || (m.regular && !same_record(&first, &m))))
                        goto found;
                if (m.regular) {
                        if (!any)
                                first = m;
                        any = true;
                        end = m.end;
                }
                ended = false;
                at = m.end;
        }
        if (!ended) {
                *ret_why = "truncated: the tar has no end";
                return -EBADMSG;
        }
        if (!any)
                return 0;
found:
        *ret = (struct record){ .data = buf + begin, .size = end - begin, .total = at };
        return 1;
}

int record_tar_next(const uint8_t *buf, size_t size, size_t *iterator, struct record_tar_member *ret) {
        struct member m;
        const char *why;

        do {
                int r;

                if (*iterator >= size)
                        return 0;
                r = member_read(buf, *iterator, size, &m, &why);
                if (r <= 0)
                        return -EBADMSG;
                *iterator = m.end;
        } while (!m.regular);

        if (m.prefix_size > 0) {
                memcpy(ret->joined, m.prefix, m.prefix_size);
                ret->joined[m.prefix_size] = '/';
                memcpy(ret->joined + m.prefix_size + 1, m.name, m.name_size);
                ret->name = ret->joined;
                ret->name_size = m.prefix_size + 1 + m.name_size;
        } else {
                ret->name = m.name;
                ret->name_size = m.name_size;
        }
        ret->data = buf + m.data_at;
        ret->size = m.data_size;
        return 1;
}
