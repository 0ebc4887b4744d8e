/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound resources, after systemd's idiom: a variable marked _cleanup_(f) is released when its scope
 * ends; TAKE_PTR and TAKE_FD hand the resource on. Every destructor accepts NULL (or -EBADF). */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_ __attribute__((unused))

/* Defines void func_p(type *p), the form that _cleanup_() wants, for a destructor that takes the value. */
#define DEFINE_CLEANUP(type, func)                                                                           \
        static inline void func##_p(type *p) {                                                               \
                if (*p)                                                                                      \
                        func(*p);                                                                            \
        }

static inline void free_p(void *p) {
        free(*(void **)p);
}

/* Closes fd if it is one, keeps errno, and returns -EBADF, so that "fd = close_fd(fd)" leaves no stale
 * number. */
static inline int close_fd(int fd) {
        if (fd >= 0) {
                int saved = errno;
                (void)close(fd);
                errno = saved;
        }
        return -EBADF;
}

static inline void close_p(int *fd) {
        *fd = close_fd(*fd);
}

static inline void fclose_p(FILE **f) {
        if (*f)
                fclose(*f);
}

static inline void closedir_p(DIR **d) {
        if (*d)
                closedir(*d);
}

#define _cleanup_free_ _cleanup_(free_p)
#define _cleanup_close_ _cleanup_(close_p)
#define _cleanup_fclose_ _cleanup_(fclose_p)
#define _cleanup_closedir_ _cleanup_(closedir_p)

#define TAKE_PTR(p)                                                                                          \
        ({                                                                                                   \
                __typeof__(p) _taken = (p);                                                                  \
                (p) = NULL;                                                                                  \
                _taken;                                                                                      \
        })
#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int _taken = (fd);                                                                           \
                (fd) = -EBADF;                                                                               \
                _taken;                                                                                      \
        })

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))
/* a - b of counts and amounts that stays at 0; of times, usec_sub() says more. */
static inline uint64_t sub_sat(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

/* Names of their own in every use, so that they nest without shadowing each other. */
#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)
#define CHOOSE_(op, a, b, x, y)                                                                              \
        ({                                                                                                   \
                __typeof__(a) x = (a);                                                                       \
                __typeof__(b) y = (b);                                                                       \
                x op y ? x : y;                                                                              \
        })
#define MIN(a, b) CHOOSE_(<, a, b, CONCAT(_x, __COUNTER__), CONCAT(_y, __COUNTER__))
#define MAX(a, b) CHOOSE_(>, a, b, CONCAT(_x, __COUNTER__), CONCAT(_y, __COUNTER__))
