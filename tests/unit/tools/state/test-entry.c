/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a backup may hold. */
#include "tools/state/entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_names(void **state) {
        static const struct {
                const char *name;
                enum entry_kind kind;
        } names[] = {
                { "primus.db", ENTRY_DATABASE },
                { "manifest.json", ENTRY_MANIFEST },
                { "manifest.mac", ENTRY_SEAL },
                { "settings/masterd.conf", ENTRY_SETTING },
                { "settings/masterd.conf.d/10-here.conf", ENTRY_SETTING },
                { "settings/job-defaults.d/10-site.json", ENTRY_SETTING },
                { "settings/job-defaults.d/a/b", _ENTRY_INVALID },
                { "settings/hooks/fence", ENTRY_SETTING },
                { "settings/hooks/fence.d/10-ipmi", ENTRY_SETTING },
                { "bundles/1000/" HASH, ENTRY_BUNDLE },
                { "", _ENTRY_INVALID },
                { "/primus.db", _ENTRY_INVALID },
                { "../primus.db", _ENTRY_INVALID },
                { "./primus.db", _ENTRY_INVALID },
                { "primus.db-wal", _ENTRY_INVALID },
                { "primus.db/x", _ENTRY_INVALID },
                { "settings/", _ENTRY_INVALID },
                { "settings/agentd.conf", _ENTRY_INVALID },
                { "settings/node/node.key", _ENTRY_INVALID },
                { "settings/../passwd", _ENTRY_INVALID },
                { "settings/masterd.conf.d/", _ENTRY_INVALID },
                { "settings/masterd.conf.d/..", _ENTRY_INVALID },
                { "settings/masterd.conf.d/../../../x", _ENTRY_INVALID },
                { "settings/masterd.conf.d/a/b", _ENTRY_INVALID },
                { "settings/masterd.conf.d/.hidden", _ENTRY_INVALID },
                { "settings/masterd.conf.d/a\nb", _ENTRY_INVALID },
                { "settings/hooks", _ENTRY_INVALID },
                { "settings/hooks/", _ENTRY_INVALID },
                { "settings/hooks//x", _ENTRY_INVALID },
                { "settings/hooks/fence.d/", _ENTRY_INVALID },
                { "settings/hooks/fence.d/..", _ENTRY_INVALID },
                { "settings/hooks/../../../../etc/passwd", _ENTRY_INVALID },
                { "settings/hooks/a/b/c", _ENTRY_INVALID },
                { "bundles/" HASH, _ENTRY_INVALID },
                { "bundles/../" HASH, _ENTRY_INVALID },
                { "bundles/ml/" HASH, _ENTRY_INVALID },
                { "bundles/4294967296/" HASH, _ENTRY_INVALID },
                { "bundles/1000/" HASH ".part", _ENTRY_INVALID },
                { "bundles/1000/" HASH "/x", _ENTRY_INVALID },
        };
        char longest[300] = "settings/hooks/";

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (entry_kind_of(names[i].name) != names[i].kind)
                        fail_msg("%s: %d", names[i].name, entry_kind_of(names[i].name));
        memset(longest + strlen(longest), 'a', 129);
        assert_int_equal(entry_kind_of(longest), _ENTRY_INVALID);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
