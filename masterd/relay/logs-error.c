/* SPDX-License-Identifier: Apache-2.0 */
/* Which line of a log says what went wrong. Pure: bytes in, one line out. A Python traceback says it best,
 * and the last one is the cause that ended the program; without one it is the first line that looks like an
 * error, since what follows is mostly its consequence. */
#include <ctype.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"
#include "masterd/relay/logs.h"

#define LINE_MAX_BYTES 4096u     /* of a line, more is not looked at */
#define TRACEBACK_LINES_MAX 400u /* between the head of a traceback and its exception */

struct line {
        const char *p;
        size_t n;
};

/* The next line without its end; what a progress bar overwrote (up to the last CR) is left out. */
static bool next_line(const char **p, const char *end, struct line *ret) {
        const char *nl, *cr, *stop;

        if (*p >= end)
                return false;
        nl = memchr(*p, '\n', (size_t)(end - *p));
        stop = nl ? nl : end;
        ret->p = *p;
        *p = nl ? nl + 1 : end;
        while (stop > ret->p && stop[-1] == '\r')
                stop--;
        cr = memrchr(ret->p, '\r', (size_t)(stop - ret->p));
        if (cr)
                ret->p = cr + 1;
        ret->n = MIN((size_t)(stop - ret->p), (size_t)LINE_MAX_BYTES);
        return true;
}

static const char *find(struct line l, const char *what) {
        return l.p ? memmem(l.p, l.n, what, strlen(what)) : NULL;
}

/* ASCII only; what is lower case. */
static bool find_nocase(struct line l, const char *what) {
        size_t n = strlen(what);

        for (size_t i = 0; i + n <= l.n; i++) {
                size_t k = 0;
                while (k < n && tolower((unsigned char)l.p[i + k]) == what[k])
                        k++;
                if (k == n)
                        return true;
        }
        return false;
}

static struct line trim(struct line l) {
        while (l.n > 0 && isspace((unsigned char)*l.p))
                l.p++, l.n--;
        while (l.n > 0 && isspace((unsigned char)l.p[l.n - 1]))
                l.n--;
        return l;
}

/* Valid UTF-8 in one line: colours and control characters go. Returns the length. */
static size_t clean(struct line l, char *buf, size_t size) {
        char raw[LINE_MAX_BYTES + 1];
        size_t n = 0;

        for (size_t i = 0; i < l.n; i++) {
                unsigned char c = (unsigned char)l.p[i];
                if (c == 0x1b && i + 1 < l.n && l.p[i + 1] == '[') {
                        i += 2;
                        while (i < l.n && !(l.p[i] >= 0x40 && l.p[i] <= 0x7e))
                                i++;
                        continue;
                }
                raw[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
        }
        struct line t = trim((struct line){ raw, n });
        (void)utf8_clean(t.p, t.n, buf, size);
        /* U+0080..U+009F are control characters as well. */
        for (char *p = buf; p[0] && p[1]; p++)
                if ((unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0)
                        p[0] = p[1] = ' ';
        return strlen(buf);
}

/* ---- Python ---- */

#define TRACEBACK "Traceback (most recent call last)"

struct traceback {
        struct line exception, file; /* file: the last "File ..., line N, in F" */
        bool reporter;               /* only tells that another process failed */
};

/* "torch.OutOfMemoryError: ...", "KeyboardInterrupt": a dotted name, then a colon or nothing. */
static bool looks_like_exception(struct line l) {
        size_t i = 0;

        if (l.n == 0 || !(isalpha((unsigned char)*l.p) || *l.p == '_'))
                return false;
        while (i < l.n && (isalnum((unsigned char)l.p[i]) || l.p[i] == '_' || l.p[i] == '.'))
                i++;
        return i == l.n || l.p[i] == ':';
}

/* Launchers die of their children; theirs is the last traceback and says nothing. */
static bool is_reporter(struct line l) {
        return find(l, "ChildFailedError") || find(l, "ProcessExitedException") ||
               find(l, "CalledProcessError");
}

/* head: the line with the marker; *p: behind it, moved behind the traceback where there is one. */
static bool read_traceback(struct line head, const char **p, const char *end, struct traceback *ret) {
        size_t prefix = (size_t)(find(head, TRACEBACK) - head.p);
        struct traceback t = {};
        const char *at = *p;
        struct line l, other = {};
        bool frames = false;

        for (unsigned n = 0; n < TRACEBACK_LINES_MAX; n++) {
                const char *before = at;

                if (!next_line(&at, end, &l))
                        break;
                if (find(l, TRACEBACK)) {
                        at = before; /* a new one begins */
                        break;
                }
                /* Launchers put "[rank0]: " before every line. A date stands before the first one only. */
                if (prefix > 0 && l.n >= prefix && memcmp(l.p, head.p, prefix) == 0)
                        l.p += prefix, l.n -= prefix;
                if (trim(l).n == 0)
                        continue;
                if (*l.p == ' ' || *l.p == '\t') {
                        struct line s = trim(l);
                        if (s.n > 6 && memcmp(s.p, "File \"", 6) == 0) {
                                t.file = s;
                                frames = true;
                        }
                        continue;
                }
                if (!frames)
                        break;
                if (looks_like_exception(l)) {
                        t.exception = l;
                        break;
                }
                if (other.n == 0)
                        other = l; /* somebody else printed in between, or an odd name */
        }
        if (t.exception.n == 0)
                t.exception = other;
        *p = at;
        if (t.exception.n == 0)
                return false;
        t.reporter = is_reporter(t.exception);
        *ret = t;
        return true;
}

/* "train.py:12 in main" out of: File "/home/a/train.py", line 12, in main */
static void place_of(struct line file, char *buf, size_t size) {
        const char *name = file.p + 6, *quote = memchr(name, '"', file.n - 6), *slash, *number, *in,
                   *end = file.p + file.n;

        buf[0] = 0;
        if (!quote)
                return;
        slash = memrchr(name, '/', (size_t)(quote - name));
        if (slash)
                name = slash + 1;
        struct line rest = { quote, (size_t)(end - quote) };
        number = find(rest, ", line ");
        if (!number)
                return;
        number += strlen(", line ");
        size_t digits = 0;
        while (number + digits < end && digits < 9 && isdigit((unsigned char)number[digits]))
                digits++;
        rest = (struct line){ number, (size_t)(end - number) };
        in = find(rest, ", in ");
        if (in)
                in += strlen(", in ");
        (void)snprintf(buf, size, "%.*s:%.*s%s%.*s", (int)MIN((size_t)(quote - name), (size_t)80), name,
                       (int)digits, number, in ? " in " : "",
                       in ? (int)MIN((size_t)(end - in), (size_t)60) : 0, in ? in : "");
}

static size_t python_line(const struct traceback *t, char *buf, size_t size) {
        char place[192], text[256];
        size_t n, l;

        place_of(t->file, place, sizeof(place));
        l = clean((struct line){ place, strlen(place) }, text, sizeof(text));
        /* The place must not be what is cut off. */
        if (l > 0 && l + 16 < size) {
                n = clean(t->exception, buf, size - l - 3);
                n += (size_t)snprintf(buf + n, size - n, " (%s)", text);
        } else
                n = clean(t->exception, buf, size);
        return n;
}

/* ---- anything else ---- */

/* Lower case; anywhere in a line. */
static const char *const signs[] = {
        "primus-executor: ",
        "primus-launch: ",
        "error:",
        "error]",
        "[error",
        " error ",
        "fatal",
        "exception in thread",
        "unhandled exception",
        "panic:",
        "panicked at",
        "segmentation fault",
        "bus error",
        "illegal instruction",
        "floating point exception",
        "core dumped",
        "stack smashing",
        "double free",
        "addresssanitizer",
        "terminate called",
        "assertion",
        "command not found",
        "no such file",
        "permission denied",
        "no space left",
        "not a directory",
        "is a directory",
        "exec format error",
        "cannot execute",
        "cannot open shared object",
        "symbol lookup error",
        "unbound variable",
        "syntax error",
        "connection refused",
        "address already in use",
        "no route to host",
        "out of memory",
        "cannot allocate memory",
        "cuda error",
        "cudnn_status",
        "cublas_status",
        "nccl warn",
        "nccl error",
        "ncclsystemerror",
        "ncclinternalerror",
        "ncclunhandledcudaerror",
        "ncclremoteerror",
        "mpi_abort",
        "xid (",
        "modulenotfounderror",
        "importerror",
        "traceback (most recent call last)",
        "killed",
};

/* Lines that have a sign and are none: lower case. */
static const char *const harmless[] = {
        "nccl info",   "no error",   "0 errors",  "without error", "error: none",
        "error: null", "error rate", "non-fatal", "nonfatal",      "level=info",
        "[info]",      " info:",     "info  ",    "debug:",        "[debug]",
};

/* "train error: 0.0213" is a measurement. */
static bool is_measurement(struct line l) {
        for (size_t i = 0; i + 6 <= l.n; i++) {
                if (strncasecmp(l.p + i, "error:", 6) != 0)
                        continue;
                i += 6;
                while (i < l.n && l.p[i] == ' ')
                        i++;
                return i < l.n && (isdigit((unsigned char)l.p[i]) || l.p[i] == '.');
        }
        return false;
}

static bool looks_like_error(struct line l) {
        for (size_t i = 0; i < ELEMENTSOF(harmless); i++)
                if (find_nocase(l, harmless[i]))
                        return false;
        for (size_t i = 0; i < ELEMENTSOF(signs); i++)
                if (find_nocase(l, signs[i]))
                        return !is_measurement(l);
        return false;
}

static size_t plain_line(const char *text, size_t size, char *buf, size_t buf_size) {
        const char *p = text, *end = text + size;
        struct line l, next;

        while (next_line(&p, end, &l)) {
                if (!looks_like_error(l))
                        continue;
                /* C++ says on the next line what it means. */
                if (find(l, "terminate called") && next_line(&p, end, &next) && find(next, "what():"))
                        l = next;
                size_t n = clean(l, buf, buf_size);
                if (n > 0)
                        return n;
        }
        return 0;
}

size_t logs_error_line(const char *text, size_t size, char *buf, size_t buf_size) {
        const char *p = text, *end = text + size;
        struct traceback best = {}, t;
        bool have = false;
        struct line l;

        if (buf_size == 0)
                return 0;
        buf[0] = 0;
        while (next_line(&p, end, &l))
                if (find(l, TRACEBACK) && read_traceback(l, &p, end, &t) &&
                    (!have || best.reporter || !t.reporter)) {
                        best = t;
                        have = true;
                }
        if (have) {
                size_t n = python_line(&best, buf, buf_size);
                if (n > 0)
                        return n;
        }
        return plain_line(text, size, buf, buf_size);
}
