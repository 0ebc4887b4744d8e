/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"
#include "masterd/relay/logs.h"

static const struct {
        const char *name, *log, *expect;
} table[] = {
        { "nothing", "epoch 1 loss 0.3\nepoch 2 loss 0.2\ndone\n", "" },
        { "empty", "", "" },
        { "python",
          "epoch 1\nTraceback (most recent call last):\n  File \"/home/a/train.py\", line 12, in <module>\n  "
          "  main()\n"
          "  File \"/home/a/train.py\", line 7, in main\n    raise ValueError(\"bad shape\")\nValueError: "
          "bad shape\n",
          "ValueError: bad shape (train.py:7 in main)" },
        { "python with carets, no newline at the end",
          "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    1/0\n    "
          "~^~\nZeroDivisionError: division by zero",
          "ZeroDivisionError: division by zero (x.py:1 in <module>)" },
        { "chained: the last one ended it",
          "Traceback (most recent call last):\n  File \"a.py\", line 3, in load\n    d[\"k\"]\nKeyError: "
          "'k'\n\n"
          "The above exception was the direct cause of the following exception:\n\n"
          "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n    load()\n"
          "  File \"a.py\", line 5, in load\n    raise RuntimeError(\"no config\") from e\nRuntimeError: no "
          "config\n",
          "RuntimeError: no config (a.py:5 in load)" },
        { "name alone",
          "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nKeyboardInterrupt\n",
          "KeyboardInterrupt (a.py:3 in f)" },
        { "recursion",
          "Traceback (most recent call last):\n  File \"r.py\", line 2, in f\n    f()\n  File \"r.py\", line "
          "2, in f\n    f()\n"
          "  [Previous line repeated 996 more times]\nRecursionError: maximum recursion depth exceeded\n",
          "RecursionError: maximum recursion depth exceeded (r.py:2 in f)" },
        { "logged: a date before the first line only",
          "2026-01-02 10:00:00 ERROR Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    "
          "g()\nOSError: [Errno 5] I/O\n",
          "OSError: [Errno 5] I/O (a.py:3 in f)" },
        { "CUDA out of memory on a rank, then torchrun's own",
          "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/train.py\", line 88, in "
          "step\n[rank3]:     loss.backward()\n"
          "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a "
          "total capacity of 79.1 GiB\n"
          "E0102 10:00:00.000 4711 api.py:869] failed (exitcode: 1)\n"
          "Traceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n    "
          "sys.exit(main())\n"
          "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n",
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total "
          "capacity of 79.1 GiB "
          "(train.py:88 in step)" },
        { "only the launcher's",
          "Traceback (most recent call last):\n  File \"run.py\", line 8, in main\n    x()\n"
          "subprocess.CalledProcessError: Command '['x']' returned non-zero exit status 1.\n",
          "subprocess.CalledProcessError: Command '['x']' returned non-zero exit status 1. (run.py:8 in "
          "main)" },
        { "cut: a head without its exception",
          "Traceback (most recent call last):\n  File \"run.py\", line 8, in main\n",
          "Traceback (most recent call last):" },
        { "somebody prints in between",
          "Traceback (most recent call last):\n  File \"run.py\", line 8, in main\n    f()\n[step 12] "
          "x=3\nValueError: no\n",
          "ValueError: no (run.py:8 in main)" },
        { "a script's syntax error",
          "  File \"x.py\", line 3\n    foo(\n       ^\nSyntaxError: '(' was never closed\n",
          "SyntaxError: '(' was never closed" },
        { "command not found", "start\n./run.sh: line 3: torchrum: command not found\n",
          "./run.sh: line 3: torchrum: command not found" },
        { "no such file", "python3: can't open file '/w/trian.py': [Errno 2] No such file or directory\n",
          "python3: can't open file '/w/trian.py': [Errno 2] No such file or directory" },
        { "unbound", "run.sh: line 2: DATA: unbound variable\n", "run.sh: line 2: DATA: unbound variable" },
        { "segfault", "step 1\nrun.sh: line 5: 12345 Segmentation fault      (core dumped) ./train\n",
          "run.sh: line 5: 12345 Segmentation fault      (core dumped) ./train" },
        { "killed", "run.sh: line 5: 12345 Killed                  ./train\n",
          "run.sh: line 5: 12345 Killed                  ./train" },
        { "c++",
          "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: device-side "
          "assert triggered\nAborted\n",
          "what():  CUDA error: device-side assert triggered" },
        { "nccl",
          "n1:10:10 [0] NCCL INFO NET/IB : No device found. error ignored\nn1:10:10 [0] misc/socket.cc:483 "
          "NCCL WARN socketStartConnect: "
          "Connect to 10.0.0.2<4000> failed\n",
          "n1:10:10 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.2<4000> failed" },
        { "a measurement", "epoch 1 train error: 0.21 val error: 0.3\nmean absolute error: .5\n0 errors\n",
          "" },
        { "first of several",
          "gcc: fatal error: no input files\ncompilation terminated.\nmake: *** [all] Error 1\n",
          "gcc: fatal error: no input files" },
        { "library",
          "./t: error while loading shared libraries: libnccl.so.2: cannot open shared object file\n",
          "./t: error while loading shared libraries: libnccl.so.2: cannot open shared object file" },
        { "colours, carriage returns and bytes",
          " 10%|#   | error-free\r 20%|##\r\033[31mERROR:\033[0m bad\tthing \xff\xc3\xa4\xc2\x9b!\n",
          "ERROR: bad thing ?\xc3\xa4  !" },
};

static void test_table(void **state) {
        char buf[512];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                /* An exact allocation, so that the sanitizer sees a step too far. */
                size_t n = strlen(table[i].log);
                _cleanup_free_ char *copy = malloc(n ? n : 1);
                assert_non_null(copy);
                memcpy(copy, table[i].log, n);
                size_t l = logs_error_line(copy, n, buf, sizeof(buf));
                if (strcmp(buf, table[i].expect) != 0)
                        print_error("%s\n", table[i].name);
                assert_string_equal(buf, table[i].expect);
                assert_int_equal(l, strlen(table[i].expect));
        }
}

/* Every part of every log and every size of the buffer stays within bounds and is text. */
static void test_bounds(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                for (size_t n = 0; n <= strlen(table[i].log); n++) {
                        size_t size = 1 + n * 7 % 200;
                        _cleanup_free_ char *copy = malloc(n ? n : 1), *buf = malloc(size);
                        assert_non_null(copy);
                        assert_non_null(buf);
                        memcpy(copy, table[i].log, n);
                        size_t l = logs_error_line(copy, n, buf, size);
                        assert_true(l < size);
                        assert_true(utf8_valid(buf, l));
                        assert_null(memchr(buf, '\n', l));
                }
}

static void test_long(void **state) {
        size_t n = 300000;
        _cleanup_free_ char *log = malloc(n);
        char buf[512];

        assert_non_null(log);
        memset(log, 'x', n);
        memcpy(log, "error: ", 7);
        assert_int_equal(logs_error_line(log, n, buf, sizeof(buf)), sizeof(buf) - 1);
        memset(log, '\n', n);
        assert_int_equal(logs_error_line(log, n, buf, sizeof(buf)), 0);
        memset(log, 0, n);
        assert_int_equal(logs_error_line(log, n, buf, sizeof(buf)), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_bounds),
                                            cmocka_unit_test(test_long) };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
