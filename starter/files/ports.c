/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of type cgroup/bind4 and cgroup/bind6, written instruction by instruction: they are a list of
 * comparisons, and need neither maps nor a compiler nor libbpf. Invariant: a port outside the range is never
 * refused. */
#include "starter/files/ports.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"

#define BPFFS_MAGIC 0xcafe4a11
#define PIN_MODE 0700

#define INSTRUCTION(op, dst, src, o, i)                                                                      \
        (struct bpf_insn) {                                                                                  \
                .code = (op), .dst_reg = (dst), .src_reg = (src), .off = (int16_t)(o), .imm = (i)            \
        }

int ports_program(uint16_t first, uint16_t last, const uint16_t *granted, size_t n,
                  struct bpf_insn ret[static PORTS_INSTRUCTIONS_MAX]) {
        size_t k = 0, allow = n + 6; /* where the two last instructions are */

        if (allow + 2 > PORTS_INSTRUCTIONS_MAX)
                return -E2BIG;
        ret[k++] = INSTRUCTION(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(struct bpf_sock_addr, user_port), 0);
        ret[k++] = INSTRUCTION(BPF_ALU | BPF_END | BPF_TO_BE, 2, 0, 0, 16); /* of the network's order */
        /* Jumps count from the instruction behind. */
        ret[k] = INSTRUCTION(BPF_JMP | BPF_JLT | BPF_K, 2, 0, allow - k - 1, first);
        k++;
        ret[k] = INSTRUCTION(BPF_JMP | BPF_JGT | BPF_K, 2, 0, allow - k - 1, last);
        k++;
        for (size_t i = 0; i < n; i++, k++)
                ret[k] = INSTRUCTION(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, allow - k - 1, granted[i]);
        ret[k++] = INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0); /* EPERM */
        ret[k++] = INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
        ret[k++] = INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1);
        ret[k++] = INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
        return (int)k;
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr) {
        long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

        return r < 0 ? -errno : (int)r;
}

static int load_and_pin(const struct bpf_insn *program, int n, enum bpf_attach_type type, const char *path) {
        static const char licence[] = "Apache-2.0"; /* it calls nothing of the kernel's */
        union bpf_attr load = { .prog_type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
                                .insn_cnt = (uint32_t)n,
                                .insns = (uint64_t)(uintptr_t)program,
                                .license = (uint64_t)(uintptr_t)licence,
                                .expected_attach_type = type,
                                .prog_name = "primus_ports" };
        _cleanup_close_ int fd = bpf(BPF_PROG_LOAD, &load);
        union bpf_attr pin = {};

        if (fd < 0)
                return fd;
        pin.pathname = (uint64_t)(uintptr_t)path;
        pin.bpf_fd = (uint32_t)fd;
        (void)unlink(path); /* of an earlier try */
        return bpf(BPF_OBJ_PIN, &pin);
}

static void replace_bytes(char *s, char from, char to) {
        for (; *s; s++)
                if (*s == from)
                        *s = to;
}

/* bpffs takes no dots in names (EPERM): "primus-418-worker-3+1+service+bind4". */
static void names(const char *unit, struct ports_pins *ret) {
        snprintf(ret->bind4, sizeof(ret->bind4), PORTS_PIN_DIR "/%s.bind4", unit);
        snprintf(ret->bind6, sizeof(ret->bind6), PORTS_PIN_DIR "/%s.bind6", unit);
        replace_bytes(ret->bind4, '.', '+');
        replace_bytes(ret->bind6, '.', '+');
}

int ports_pin(const char *unit, uint16_t first, uint16_t last, const uint16_t *granted, size_t n,
              struct ports_pins *ret) {
        struct bpf_insn program[PORTS_INSTRUCTIONS_MAX];
        struct ports_pins pins;
        struct statfs fs;
        int r = ports_program(first, last, granted, n, program), k = r;

        if (r < 0)
                return r;
        if (statfs("/sys/fs/bpf", &fs) < 0)
                return -errno;
        if (fs.f_type != BPFFS_MAGIC)
                return -EOPNOTSUPP;
        if (mkdir(PORTS_PIN_DIR, PIN_MODE) < 0 && errno != EEXIST)
                return -errno;
        names(unit, &pins);
        r = load_and_pin(program, k, BPF_CGROUP_INET4_BIND, pins.bind4);
        if (r >= 0)
                r = load_and_pin(program, k, BPF_CGROUP_INET6_BIND, pins.bind6);
        if (r < 0) {
                ports_unpin(unit);
                return r;
        }
        *ret = pins;
        return 0;
}

void ports_unpin(const char *unit) {
        struct ports_pins pins;

        names(unit, &pins);
        (void)unlink(pins.bind4);
        (void)unlink(pins.bind6);
}

void ports_sweep_stale(void) {
        char unit[UNIT_NAME_MAX], path[sizeof(PRIVATE_DIR) + UNIT_NAME_MAX + 1];
        struct dirent *entry;
        DIR *dir = opendir(PORTS_PIN_DIR);

        if (!dir)
                return;
        while ((entry = readdir(dir))) {
                size_t l = strlen(entry->d_name);
                if (l <= 6 || l - 6 >= sizeof(unit) || strncmp(entry->d_name + l - 6, "+bind", 5) != 0)
                        continue;
                memcpy(unit, entry->d_name, l - 6);
                unit[l - 6] = 0;
                replace_bytes(unit, '+', '.');
                if (executor_unit_name_valid(unit) &&
                    snprintf(path, sizeof(path), PRIVATE_DIR "/%s", unit) > 0 && access(path, F_OK) < 0 &&
                    errno == ENOENT)
                        ports_unpin(unit);
        }
        (void)closedir(dir);
}
