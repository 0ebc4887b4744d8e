/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a name whose node has ever come with its certificate is granted to a token with replace alone.
 */
#include "masterd/node/claim.h"

#include <stdio.h>
#include <string.h>

#include "masterd/node/node.h"

static bool same_host(const struct addr *a, const struct addr *b) {
        return a->family != AF_UNSPEC && a->family == b->family &&
               memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

enum claim claim_judge(const struct node *node, const char *name, const char *token_name, bool replace,
                       const struct addr *from) {
        if (*token_name && strcmp(token_name, name) != 0)
                return CLAIM_OTHER_NAME;
        if (!node)
                return CLAIM_NEW;
        if (node->link)
                return CLAIM_CONNECTED;
        if (replace)
                return node->epoch > 0 ? CLAIM_TAKES_OVER : CLAIM_AGAIN;
        /* The certificate may never have arrived. Whoever has the token could have come first just as well.
         */
        if (node->epoch == 0 && (*token_name || same_host(&node->joined.from, from)))
                return CLAIM_AGAIN;
        return CLAIM_TAKEN;
}

const char *claim_refusal(enum claim claim, const char *name, const char *token_name,
                          char buf[static CLAIM_TEXT_MAX]) {
        switch (claim) {
        case CLAIM_OTHER_NAME:
                snprintf(buf, CLAIM_TEXT_MAX,
                         "the token is for the name %s and this host joins as %s; give this one that name "
                         "(--name), or make another token on the master: primusctl token create --name %s",
                         token_name, name, name);
                break;
        case CLAIM_CONNECTED:
                snprintf(buf, CLAIM_TEXT_MAX,
                         "a node of this name is connected; give this one another (--name), or remove that "
                         "one first, on the master: primusctl node remove %s",
                         name);
                break;
        default:
                snprintf(buf, CLAIM_TEXT_MAX,
                         "the name %s belongs to a node of the cluster that is not connected now; if this is "
                         "that host, installed anew, make the token for it on the master: primusctl token "
                         "create --replace %s; if it is not, give this one another name (--name)",
                         name, name);
        }
        return buf;
}
