/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/names.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/cleanup.h"

bool node_name_valid(const char *s) {
        size_t n = s ? strlen(s) : 0;

        if (n < 1 || n > 64 || s[0] == '-' || s[0] == '.' || s[n - 1] == '-' || s[n - 1] == '.')
                return false;
        for (size_t i = 0; i < n; i++)
                if (!((s[i] >= 'a' && s[i] <= 'z') || isdigit((unsigned char)s[i]) || s[i] == '-' ||
                      (s[i] == '.' && s[i - 1] != '.')))
                        return false;
        return true;
}

static bool identifier_valid(const char *s, size_t max) {
        size_t n = s ? strlen(s) : 0;

        if (n < 1 || n > max || isdigit((unsigned char)s[0]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                      isdigit((unsigned char)s[i]) || s[i] == '_'))
                        return false;
        return true;
}

bool role_name_valid(const char *s) {
        return identifier_valid(s, 32);
}

bool env_name_valid(const char *s) {
        return identifier_valid(s, 255);
}

size_t edit_distance(const char *a, const char *b) {
        size_t la = MIN(strlen(a), (size_t)64), lb = MIN(strlen(b), (size_t)64), row[65];

        for (size_t j = 0; j <= lb; j++)
                row[j] = j;
        for (size_t i = 1; i <= la; i++) {
                size_t diagonal = row[0];
                row[0] = i;
                for (size_t j = 1; j <= lb; j++) {
                        size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
                        best = MIN(best, above + 1);
                        best = MIN(best, row[j - 1] + 1);
                        diagonal = above;
                        row[j] = best;
                }
        }
        return row[lb];
}
