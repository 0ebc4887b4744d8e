/* SPDX-License-Identifier: Apache-2.0 */
/* What "primusctl doctor" finds out: a list of findings. The checks of doctor-host.c and doctor-certificate.c
 * are functions of the files below a root; those of doctor-live.c ask the kernel, the network, the bus. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"

enum finding_grade {
        FINDING_OK,
        FINDING_UNKNOWN, /* it could not be looked at, and the text says what would help */
        FINDING_WARN,    /* works, and something will be missed */
        FINDING_FAIL,    /* executors will not run (well) here until it is done */
        _FINDING_MAX,
};

struct finding {
        enum finding_grade grade;
        const char *check; /* static: "systemd", "controllers" ... */
        char text[256];    /* what is the case */
        char help[256];    /* how to get what is missing: a command, a package, a setting; or "" */
};

struct findings {
        struct finding *list;
        size_t n, allocated;
};

/* help may be NULL. Without memory the finding is lost, and the caller hears of it at the end by
 * findings.list being NULL. */
void findings_add(struct findings *f, enum finding_grade grade, const char *check, const char *help,
                  const char *format, ...) _printf_(5, 6);
void findings_done(struct findings *f);

enum joined {
        JOINED,          /* has an identity */
        JOINED_NOT,      /* could have one */
        JOINED_NO_AGENT, /* primus-agent is not installed */
};

/* Files below root ("" in life). */
enum joined doctor_joined(const char *root);
bool doctor_is_master(const char *root); /* masterd is enabled here */
void doctor_setup(struct findings *f, const char *root);
void doctor_host(struct findings *f, const char *root);
void doctor_certificate(struct findings *f, const char *root, uint64_t now_real);

/* This host, now. */
void doctor_live(struct findings *f);
/* Where masterd is enabled. */
void doctor_master(struct findings *f);
