/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees the state of life. */
#include "masterd/life/life.h"

#include <errno.h>
#include <stdlib.h>

#include "masterd/core/manager.h"
#include "masterd/life/arrays.h"
#include "masterd/life/depend.h"
#include "masterd/life/kept-progress.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/savepoints.h"
#include "masterd/life/searcher.h"

int life_new(struct manager *m) {
        m->life = calloc(1, sizeof(*m->life));
        return m->life ? 0 : -ENOMEM;
}

void life_free(struct manager *m) {
        if (!m->life)
                return;
        arrays_free_owners(m);
        searcher_forget(m, NULL);
        depend_free(m);
        savepoints_free(m);
        kept_progress_free(m);
        free(m->life);
        m->life = NULL;
}
