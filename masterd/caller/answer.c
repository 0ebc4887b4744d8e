/* SPDX-License-Identifier: Apache-2.0 */
/* Where every answer leaves. Invariant: the audit is told before the caller is. */
#include <stdarg.h>

#include "masterd/caller/audit.h"
#include "masterd/caller/reply.h"

int reply_send(sd_bus_message *reply) {
        audit_answered(reply);
        return sd_bus_send(NULL, reply, NULL);
}

int reply_return(sd_bus_message *call, const char *types, ...) {
        va_list ap;
        int r;

        audit_succeeded(call);
        va_start(ap, types);
        r = sd_bus_reply_method_returnv(call, types, ap);
        va_end(ap);
        return r;
}

int reply_errorf(sd_bus_message *call, const char *name, const char *format, ...) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = sd_bus_error_setfv(&error, name, format, ap);
        va_end(ap);
        return reply_failed(call, r, &error);
}

int reply_failed(sd_bus_message *call, int r, const sd_bus_error *error) {
        audit_failed(call, error, r);
        return sd_bus_error_is_set(error) ? sd_bus_reply_method_error(call, error)
                                          : sd_bus_reply_method_errno(call, r, NULL);
}
