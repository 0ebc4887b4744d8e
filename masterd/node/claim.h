/* SPDX-License-Identifier: Apache-2.0 */
/* Who may have a node's name. A name is for whoever comes first; from then on it is given away by a person
 * alone, who names it: by removing the node, or with a token made for replacing it. What was interrupted
 * before the name was ever used can be begun again. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/addr.h"

struct node;

enum claim {
        CLAIM_NEW,        /* nobody has had the name */
        CLAIM_AGAIN,      /* it was given away, and whoever got it has never come with it */
        CLAIM_TAKES_OVER, /* it belongs to a node, which this one replaces: to be told */
        _CLAIM_GRANTED,
        CLAIM_OTHER_NAME = _CLAIM_GRANTED, /* the token is for another */
        CLAIM_CONNECTED,                   /* its node is there, and nothing takes the name from that */
        CLAIM_TAKEN,                       /* its node is away, and the token is no reason to replace it */
        _CLAIM_MAX,
};

/* node: that of the name, or NULL. token_name: the one name that the token is for, or ""; replace: also where
 * a node has it. from: where the host is that claims the name. */
enum claim claim_judge(const struct node *node, const char *name, const char *token_name, bool replace,
                       const struct addr *from);

/* Why it is refused and what to do, for whoever joins, into buf. Returns buf. */
#define CLAIM_TEXT_MAX 480u
const char *claim_refusal(enum claim claim, const char *name, const char *token_name,
                          char buf[static CLAIM_TEXT_MAX]);
