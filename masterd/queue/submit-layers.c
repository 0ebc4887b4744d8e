/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/queue/submit-layers.h"

#include <errno.h>

#include "lib/base/cleanup.h"
#include "lib/wire/errors.h"

int submit_layers_admit(const struct layers *layers, const struct job_spec *before, const struct job_spec *s,
                        sd_bus_error *error) {
        _cleanup_free_ char *why = NULL, *unused = NULL;
        int r = layers_check(layers, s, &why);

        if (r != -EBADMSG)
                return r;
        if (before) {
                r = layers_check(layers, before, &unused);
                if (r < 0)
                        return r == -EBADMSG ? 0 : r;
        }
        return sd_bus_error_set(error, ERROR_REFUSED, why);
}
