/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory is masterd's, which has no privileges and talks to the network: what root does there,
 * by names, it does with the rights of that user, so that no link that is put there meanwhile leads root
 * elsewhere. */
#pragma once

#include <sys/types.h>

/* The user's rights from here on, until rights_back(); nothing where this is not root. Says why not. */
int rights_of(uid_t uid, gid_t gid);
/* Those of a directory's owner. A directory that is not there has none. */
int rights_of_owner(const char *path);
/* Root's again, if it was root. Cannot fail where they could be left. */
void rights_back(void);
