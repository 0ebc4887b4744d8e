/* SPDX-License-Identifier: Apache-2.0 */
/* Values of requests as arguments: each call is compared with the text of what was appended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/json/get.h"
#include "tests/kit/json.h"
#include "tests/kit/message-kit.h"
#include "webd/route/route.h"

struct request {
        const char *method, *path, *query, *body, *if_match, *key;
};

/* What of the message was appended, as JSON; or the refusal. Allocated. */
static char *arguments_of(const struct request *q) {
        _cleanup_(json_decref_p) json_t *query =
                q->query ? json_loads(json_text(q->query), 0, NULL) : json_object();
        _cleanup_(json_decref_p) json_t *body = q->body ? json_loads(json_text(q->body), 0, NULL) : NULL;
        _cleanup_(json_decref_p) json_t *list = json_array();
        struct brought b = { .query = query,
                             .body = body,
                             .raw = q->body ? json_text(q->body) : "",
                             .raw_size = q->body ? strlen(q->body) : 0,
                             .if_match = q->if_match ? json_text(q->if_match) : NULL,
                             .key = q->key ? json_text(q->key) : NULL,
                             .get = strcmp(q->method, "GET") == 0 };
        struct route_values v;
        bool others;
        const struct route *r = route_match(routes, n_routes, q->method, q->path, &v, &others);
        sd_bus_message *m = message_new();
        char *why = NULL;

        assert_non_null(r);
        assert_non_null(query);
        if (!given_known(r, &b, &why) || given_append(&r->calls[0], &b, m, &why) < 0) {
                assert_non_null(why);
                sd_bus_message_unref(m);
                return why;
        }
        message_seal(m);
        while (sd_bus_message_at_end(m, true) == 0) {
                json_t *one = NULL;
                assert_true(json_read_any(m, &one) >= 0);
                assert_int_equal(json_array_append_new(list, one), 0);
        }
        sd_bus_message_unref(m);
        return json_dumps(list, JSON_COMPACT);
}

static const struct {
        struct request request;
        const char *expected;
} cases[] = {
        { { "GET", "/v1/jobs" }, "[{}]" },
        { { "GET", "/v1/jobs", "{'limit':'50','all':'true','state':'RUNNING'}" },
          "[{'all':true,'state':'RUNNING','limit':50}]" },
        { { "GET", "/v1/jobs", "{'limit':'x'}" }, "limit: expected a number from 0 to 4294967295" },
        { { "GET", "/v1/jobs", "{'limit':'4294967296'}" }, "limit: expected a number from 0 to 4294967295" },
        { { "GET", "/v1/jobs", "{'limit':'-1'}" }, "limit: expected a number from 0 to 4294967295" },
        { { "GET", "/v1/jobs", "{'all':'perhaps'}" }, "all: expected true or false" },
        { { "GET", "/v1/jobs", "{'lmit':'1'}" }, "lmit is not known here" },
        { { "GET", "/v1/jobs", "{'limit':[]}" }, "limit stands there twice" },
        { { "GET", "/v1/jobs", NULL, "{'limit':1}" }, "limit is not known here" },
        { { "GET", "/v1/usage", "{'by':'user,day'}" }, "[['user','day'],{}]" },
        { { "GET", "/v1/usage" }, "[[],{}]" },
        { { "GET", "/v1/jobs/1/log", "{'role':'w','cursor':'616263'}" }, "['w',0,0,'abc',0,{}]" },
        { { "GET", "/v1/jobs/1/log", "{'role':'w','cursor':'61626'}" },
          "cursor: expected what an answer had as its next" },
        { { "GET", "/v1/jobs/1/log", "{'role':'w','cursor':'6x'}" },
          "cursor: expected what an answer had as its next" },
        { { "GET", "/v1/jobs/1/log" }, "role: expected a value, and there is none" },
        { { "POST", "/v1/jobs/1/kill", NULL, "{'reason':'x','grace':5}" }, "[{'reason':'x','grace':5}]" },
        { { "POST", "/v1/jobs/1/kill" }, "[{}]" },
        { { "POST", "/v1/jobs", NULL, "{}", NULL, "a-1" }, "['{}',{'key':'a-1'}]" },
        { { "POST", "/v1/jobs", NULL, "{}", NULL, "'a-1'" }, "['{}',{'key':'a-1'}]" },
        { { "POST", "/v1/jobs", NULL, "{}", NULL, "''" },
          "Idempotency-Key: expected 1 to 64 letters, digits and -_.:@+=/" },
        { { "POST", "/v1/jobs/trial", "{'priority':'3'}", "{}", NULL, "a-1" }, "['{}',{'priority':3}]" },
        { { "POST", "/v1/jobs/trial", "{'dryRun':'1'}", "{}" }, "dryRun is not known here" },
        { { "POST", "/v1/jobs/1/kill", NULL, "{'reason':5}" }, "reason: expected a text" },
        { { "POST", "/v1/jobs/1/kill", NULL, "{'raeson':'x'}" }, "raeson is not known here" },
        { { "POST", "/v1/jobs/1/kill", "{'reason':'x'}" }, "reason is not known here" },
        { { "POST", "/v1/jobs/1/kill", NULL, "{'grace':'18446744073709551615'}" }, "[{'grace':-1}]" },
        { { "POST", "/v1/jobs", "{'queue':'gpu','priority':'-5','after':'1:ok,2'}", "{'name':'a'}" },
          "['{\\'name\\':\\'a\\'}',{'queue':'gpu','priority':-5,'after':['1:ok','2']}]" },
        { { "POST", "/v1/jobs", "{'cwd':'/shared'}", "{}" }, "['{}',{'cwd':'/shared'}]" },
        { { "PATCH", "/v1/jobs/1", NULL,
            "{'priority':5,'env.LR':'0.1','worker.vcores':1.5,'requeue':true,'x':null}", "'7'" },
          "[7,{'priority':5,'env.LR':'0.1','worker.vcores':1.5,'requeue':true,'x':'null'}]" },
        { { "PATCH", "/v1/jobs/1", NULL, "{'priority':5}" }, "[0,{'priority':5}]" },
        { { "PATCH", "/v1/jobs/1", NULL, "{'role':{}}" },
          "role: expected a text, a number, true, false or null" },
        { { "PATCH", "/v1/jobs/1", NULL, "{}", "7" }, "If-Match: expected a version in quotes, such as '7'" },
        { { "PATCH", "/v1/jobs/1", NULL, "{}", "'a'" }, "version: expected a number that is not negative" },
        { { "POST", "/v1/jobs/1/scale", NULL, "{'roles':{'worker':4,'ps':-1}}", "'2'" },
          "[2,{'worker':4,'ps':-1}]" },
        { { "POST", "/v1/jobs/1/scale", NULL, "{'roles':[4]}" }, "roles: expected an object of numbers" },
        { { "POST", "/v1/jobs/1/scale", NULL, "{'roles':{'worker':1.5}}" }, "worker: expected a number" },
        { { "POST", "/v1/jobs/1/roles", NULL, "{'role':{'roleName':'x'}}" },
          "[0,'{\\'roleName\\':\\'x\\'}']" },
        { { "POST", "/v1/nodes/n1/labels", NULL, "{'changes':['a=b','c-']}" }, "[['a=b','c-']]" },
        { { "POST", "/v1/nodes/n1/labels", NULL, "{'changes':'a=b'}" }, "changes: expected a list of texts" },
        { { "POST", "/v1/nodes/n1/labels", NULL, "{'changes':[1]}" }, "changes: expected a text" },
        { { "POST", "/v1/jobs/1/restart", NULL, "{'role':'w','index':-1}" }, "['w',-1,0]" },
        { { "DELETE", "/v1/savepoint", "{'name':'s'}" }, "['s']" },
};

static void arguments(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = arguments_of(&cases[i].request);

                if (strcmp(text, json_text(cases[i].expected)) != 0)
                        print_error("case %zu, %s %s\n", i, cases[i].request.method, cases[i].request.path);
                assert_string_equal(text, json_text(cases[i].expected));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(arguments) };

        return cmocka_run_group_tests(tests, message_setup, message_teardown);
}
