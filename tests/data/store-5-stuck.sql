-- SPDX-License-Identifier: Apache-2.0
-- What primus-masterd 0.1.0 had on disk: run 92 of test-recovery, but for events that nobody reads back.
PRAGMA user_version = 5;
PRAGMA application_id = 1349675373;
BEGIN;
CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counter(name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE job(number INTEGER NOT NULL PRIMARY KEY, uid BLOB NOT NULL, owner INTEGER NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL, submitted INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, reason TEXT NOT NULL, first_error TEXT NOT NULL, exit_status INTEGER NOT NULL, state_data BLOB NOT NULL, array INTEGER NOT NULL DEFAULT 0, idx INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE job_body(number INTEGER NOT NULL PRIMARY KEY, config BLOB NOT NULL, original BLOB NOT NULL, options BLOB NOT NULL, cwd BLOB NOT NULL, env BLOB NOT NULL, warnings BLOB NOT NULL, bundle TEXT NOT NULL) STRICT;
CREATE TABLE executor(job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, attempt INTEGER NOT NULL, state INTEGER NOT NULL, node TEXT NOT NULL, rank INTEGER NOT NULL, ports BLOB NOT NULL, gpus TEXT NOT NULL, invocation BLOB NOT NULL, term INTEGER NOT NULL, epoch INTEGER NOT NULL, placed INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, result TEXT NOT NULL, code TEXT NOT NULL, status INTEGER NOT NULL, stop_requested INTEGER NOT NULL, memory_peak INTEGER NOT NULL, cpu INTEGER NOT NULL, io_read INTEGER NOT NULL, io_write INTEGER NOT NULL, reason TEXT NOT NULL, cpus TEXT NOT NULL DEFAULT '', fate INTEGER NOT NULL DEFAULT 0, memory INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(job, role, idx, attempt)) STRICT, WITHOUT ROWID;
CREATE TABLE event(job INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(job, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE node(name TEXT NOT NULL PRIMARY KEY, serial TEXT NOT NULL, epoch INTEGER NOT NULL, boot_id TEXT NOT NULL, state INTEGER NOT NULL, address TEXT NOT NULL, cpus INTEGER NOT NULL, memory INTEGER NOT NULL, joined INTEGER NOT NULL, seen INTEGER NOT NULL, inventory BLOB NOT NULL, joined_from TEXT NOT NULL DEFAULT '', joined_by INTEGER NOT NULL DEFAULT 0, taken_over INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE token(id BLOB NOT NULL PRIMARY KEY, secret_hash BLOB NOT NULL, uses_left INTEGER NOT NULL, expires INTEGER NOT NULL, source TEXT NOT NULL, creator INTEGER NOT NULL, name TEXT NOT NULL DEFAULT '', "replace" INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE revoked(serial TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, revoked INTEGER NOT NULL, not_after INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE secret(job INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY(job, name)) STRICT, WITHOUT ROWID;
CREATE TABLE file(job INTEGER NOT NULL, source INTEGER NOT NULL, file INTEGER NOT NULL, path BLOB NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, batch INTEGER NOT NULL, split INTEGER NOT NULL, PRIMARY KEY(job, source, file)) STRICT, WITHOUT ROWID;
CREATE TABLE source(job INTEGER NOT NULL, source INTEGER NOT NULL, scanned INTEGER NOT NULL, cursor BLOB NOT NULL, passed INTEGER NOT NULL, error TEXT NOT NULL, PRIMARY KEY(job, source)) STRICT, WITHOUT ROWID;
CREATE TABLE block(job INTEGER NOT NULL, block INTEGER NOT NULL, state BLOB NOT NULL, finished BLOB NOT NULL, PRIMARY KEY(job, block)) STRICT, WITHOUT ROWID;
CREATE TABLE task(job INTEGER NOT NULL, task INTEGER NOT NULL, source INTEGER NOT NULL, file INTEGER NOT NULL, epoch INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, acked INTEGER NOT NULL, skip INTEGER NOT NULL, records INTEGER NOT NULL, records_before INTEGER NOT NULL, state INTEGER NOT NULL, failures INTEGER NOT NULL, error TEXT NOT NULL, PRIMARY KEY(job, task)) STRICT, WITHOUT ROWID;
CREATE TABLE data(job INTEGER NOT NULL PRIMARY KEY, state BLOB NOT NULL) STRICT;
CREATE TABLE savepoint(name TEXT NOT NULL PRIMARY KEY, owner INTEGER NOT NULL, job INTEGER NOT NULL, job_name TEXT NOT NULL, key INTEGER NOT NULL, created INTEGER NOT NULL, done INTEGER NOT NULL, acked INTEGER NOT NULL, records INTEGER NOT NULL, partial INTEGER NOT NULL, failed INTEGER NOT NULL, bundle TEXT NOT NULL, manifest BLOB NOT NULL, config BLOB NOT NULL) STRICT;
CREATE TABLE usage(day INTEGER NOT NULL, owner INTEGER NOT NULL, pool TEXT NOT NULL, job INTEGER NOT NULL, role TEXT NOT NULL, cpu_held INTEGER NOT NULL, cpu_used INTEGER NOT NULL, memory_held INTEGER NOT NULL, gpu_held INTEGER NOT NULL, attempts INTEGER NOT NULL, unmeasured INTEGER NOT NULL, gpu_used INTEGER NOT NULL DEFAULT 0, gpu_measured INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(day, owner, pool, job, role)) STRICT, WITHOUT ROWID;
CREATE TABLE change(job INTEGER NOT NULL, version INTEGER NOT NULL, user INTEGER NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL, cuts TEXT NOT NULL, before BLOB NOT NULL, PRIMARY KEY(job, version)) STRICT, WITHOUT ROWID;
CREATE TABLE node_hold(node TEXT NOT NULL, cause INTEGER NOT NULL, drain INTEGER NOT NULL, reason TEXT NOT NULL, uid INTEGER NOT NULL, since INTEGER NOT NULL, deadline INTEGER NOT NULL, grace INTEGER NOT NULL, behind INTEGER NOT NULL, boot TEXT NOT NULL, PRIMARY KEY(node, cause)) STRICT, WITHOUT ROWID;
CREATE TABLE node_label(node TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(node, key)) STRICT, WITHOUT ROWID;
CREATE TABLE node_window(node TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, reason TEXT NOT NULL, uid INTEGER NOT NULL, PRIMARY KEY(node, start)) STRICT, WITHOUT ROWID;
CREATE TABLE stuck(node TEXT NOT NULL, job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, attempt INTEGER NOT NULL, uid BLOB NOT NULL, since INTEGER NOT NULL, cpu INTEGER NOT NULL, memory INTEGER NOT NULL, gpus TEXT NOT NULL, ports BLOB NOT NULL, reason TEXT NOT NULL, shm INTEGER NOT NULL, whole INTEGER NOT NULL, cpus TEXT NOT NULL, amounts TEXT NOT NULL, PRIMARY KEY(node, job, role, idx, attempt)) STRICT, WITHOUT ROWID;
CREATE TABLE job_avoid(job INTEGER NOT NULL, node TEXT NOT NULL, PRIMARY KEY(job, node)) STRICT, WITHOUT ROWID;
CREATE TABLE scope(job INTEGER NOT NULL, role TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY(job, role)) STRICT, WITHOUT ROWID;
CREATE TABLE blame(node TEXT NOT NULL PRIMARY KEY, state BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE share(pool TEXT NOT NULL, user INTEGER NOT NULL, usage INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(pool, user)) STRICT, WITHOUT ROWID;
CREATE TABLE verdict(job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, kind INTEGER NOT NULL, attempt INTEGER NOT NULL, since INTEGER NOT NULL, begun INTEGER NOT NULL, action INTEGER NOT NULL, acted INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(job, role, idx, kind)) STRICT, WITHOUT ROWID;
INSERT INTO "counter" VALUES ('last_job', 24);
INSERT INTO "job" VALUES (1, x'5831b7112c764176b4284d67f0d6088f', 1000, 'wait', 3, 1, 1795647620069791, 1795647620070015, 0, '1[1] KILLED: killed', '', 255, x'02000000000000009f3989ca21610600000000000000000000000000000000009f3989ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (2, x'6942fefc6ba64abbbcc66fe32549457b', 1000, 'wait', 1, 2, 1795647620069949, 1795647620070013, 0, 'it asked to be requeued', '', 255, x'0204000000000000ffceeaca216106000100000001000000000000000000000001cfeaca216106004111faca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000009f8c28257f8bb2320000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 1, 0);
INSERT INTO "job" VALUES (3, x'c895fddd2908418ca836d9d6d141be29', 1000, 'wait', 8, 2, 1795647620069956, 1795647620070022, 1795647624579324, 'killed', '', 3, x'02070000000000004f748eca216106000100000001000000ecc69dca216106004f748eca2161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000002000000000000009d95ca7b5c45960e0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 1, 1);
INSERT INTO "job" VALUES (4, x'83b0cc554ab342f8b485f34346bd0ec4', 1000, 'wait', 3, 2, 1795647620069959, 1795647620070025, 0, '', '', 255, x'02040000000000009bcd8dca216106000100000001000000c62c9dca216106009dcd8dca2161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000002000000000000000d4f9a54d057b8b20000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 1, 2);
INSERT INTO "job" VALUES (5, x'f276dc5c938240cbbb1aeb4f9bdbc0dc', 1000, 'gang', 2, 2, 1795647620952066, 1795647620952165, 0, '', '', 255, x'0204000000000000dfc3a7ca216106000100000001000000d909ceca21610600e2c3a7ca2161060000000000000000000000000000000000000000000000000000000000000000000000000000000000b8f4dbca216106000500000000000000371d235f32df55070000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (6, x'568f542d64704957b36eabad19796263', 1000, 'gang', 2, 2, 1795647621460540, 1795647621460653, 0, '', '', 255, x'0204000000000000c1b5cbca216106000100000001000000c8bedcca21610600c3b5cbca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000500000000000000d75355d715474f8a0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (7, x'52a297dbf45e491cbcb4f0d9ee814b61', 1000, 'wait', 3, 1, 1795647622112056, 1795647622112544, 0, '', '', 255, x'02000000000000003863a8ca21610600000000000000000000000000000000003863a8ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (8, x'c4d540bc6aeb46e895846219b4659754', 1000, 'wait', 6, 1, 1795647622112306, 1795647622112541, 1795647623735374, 'every required role succeeded', '', 0, x'02050000000000003264a8ca2161060000000000000000001d65a8ca216106003264a8ca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000d10434ee2403bfe50000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 1);
INSERT INTO "job" VALUES (9, x'04b92c3d15a040d8a5184f8f26fe2609', 1000, 'wait', 2, 1, 1795647622112317, 1795647623735495, 0, '', '', 255, x'02000000000000003d64a8ca216106000000000000000000c728c1ca216106003d64a8ca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000a58b886992cad4a70000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 5);
INSERT INTO "job" VALUES (10, x'd99289290f8248a09f68a374474cc520', 1000, 'wait', 6, 1, 1795647622112324, 1795647623842239, 1795647624579390, 'every required role succeeded', '', 0, x'02050000000000004464a8ca216106000000000000000000bfc9c2ca216106004464a8ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000010000000000000045655973654a93300000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 10);
INSERT INTO "job" VALUES (11, x'5ac5117bead341c69f051732a123d5c9', 1000, 'wait', 2, 1, 1795647622112329, 1795647624232922, 0, '', '', 255, x'02000000000000004964a8ca216106000000000000000000dabfc8ca216106004964a8ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000020000000000000013eb386237b132770000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 15);
INSERT INTO "job" VALUES (12, x'35aaab0a7a3d451598893c56aa740782', 1000, 'wait', 2, 1, 1795647622112335, 1795647624297935, 0, '', '', 255, x'02000000000000004f64a8ca216106000000000000000000cfbdc9ca216106004f64a8ca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000f953a6a1b8f75b940000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 20);
INSERT INTO "job" VALUES (13, x'825eb56d6daf4f3794981e3e00daea21', 1000, 'wait', 2, 1, 1795647622112341, 1795647624297949, 0, '', '', 255, x'02000000000000005564a8ca216106000000000000000000ddbdc9ca216106005564a8ca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000e96293bb821e4f7f0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 25);
INSERT INTO "job" VALUES (14, x'2ac28442d2a142da96ff1bfed307a045', 1000, 'wait', 2, 1, 1795647622112347, 1795647624579557, 0, '', '', 255, x'02000000000000005b64a8ca216106000000000000000000e509ceca216106005b64a8ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000020000000000000033aacaac2a28947f0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 30);
INSERT INTO "job" VALUES (15, x'3222424ad3a1423b841e6c4707c7c0e1', 1000, 'wait', 2, 1, 1795647622112353, 1795647624639361, 0, '', '', 255, x'02000000000000006164a8ca21610600000000000000000081f3ceca216106006164a8ca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000200000000000000d10434ee2403bfe50000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 35);
INSERT INTO "job" VALUES (16, x'34ba850c8c6a42c7a180f211cd6fe6ce', 1000, 'wait', 2, 1, 1795647622112359, 1795647624639373, 0, '', '', 255, x'02000000000000006764a8ca2161060000000000000000008df3ceca216106006764a8ca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000200000000000000310210090b7766510000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 7, 40);
INSERT INTO "job" VALUES (17, x'e33a8aa351454a66aee5b36cd8332115', 1000, 'gang', 8, 1, 1795647623283751, 0, 1795647624579363, 'job 3 was killed, and this one was to run after its success (after 3:ok)', '', 3, x'02070000000000002744baca21610600000000000000000000000000000000002744baca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (18, x'2beccd074a814fc6bb5b09d89a819b81', 1000, 'wait', 1, 1, 1795647623883602, 0, 0, 'after job 5 (STARTING), job 6 (STARTING)', '', 255, x'0200000000000000526bc3ca2161060000000000000000000000000000000000526bc3ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (19, x'b952e5d5625d415890d1a1edacb5622d', 1000, 'wait', 2, 1, 1795647624579350, 1795647624639378, 0, '', '', 255, x'02000000000000001609ceca21610600000000000000000092f3ceca216106001609ceca216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000200000000000000f1d99fa480ea57050000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 1, 3);
INSERT INTO "job" VALUES (20, x'c191592b91d5465f92c91ae5dede9112', 1000, 'together', 2, 1, 1795647624941281, 1795647625491825, 0, 'the job starts again: a/0 has ended: n2 was declared dead', '', 255, x'0200000000000000e18ed3ca21610600000000000000000072f5dbca21610600e18ed3ca2161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000003000000000000006643af58e2c68af10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (21, x'50fdc7e9657b44f49d540e8eb7ab473a', 1000, 'gang', 1, 1, 1795647625266525, 0, 0, 'after job 16 (STARTING)', '', 255, x'02000000000000005d85d8ca21610600000000000000000000000000000000005d85d8ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (22, x'c0c9f8f369584fbca9f8b2933095add8', 1000, 'wait', 1, 1, 1795647626175735, 0, 0, 'after job 1 (RUNNING), job 14 (STARTING)', '', 255, x'0200000000000000f764e6ca2161060000000000000000000000000000000000f764e6ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (23, x'6e7e7318f8374238a207a99c1ab75f98', 1000, 'gang', 1, 1, 1795647626577801, 0, 0, 'after job 5 (STARTING), job 14 (STARTING)', '', 255, x'02000000000000008987ecca21610600000000000000000000000000000000008987ecca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (24, x'4523a7c2985e484aa344fdeee91e016e', 1000, 'gang', 1, 1, 1795647627119583, 0, 0, 'role w: 3 wanted, more than the 1 usable nodes hold even when empty, short of nodes', '', 255, x'0200000000000000dfcbf4ca2161060000000000000000000000000000000000dfcbf4ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job_body" VALUES (1, CAST('{
  "name": "wait",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "maxAppAttempts": 1,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 2,
      "minNum": 2,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 50,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 3,
          "maxFailurePolicy": "NONE",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "wait",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": 3600,
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "array": "0-8%3"
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (5, CAST('{
  "name": "gang",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "signal": "USR1@1h",
  "maxAppAttempts": 3,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 4,
      "minNum": 4,
      "vcores": 0.25,
      "memoryMb": 16,
      "gpuNum": 1,
      "portNum": 1,
      "command": "y",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  }
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (6, CAST('{
  "name": "gang",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "signal": "USR1@1h",
  "maxAppAttempts": 3,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 2,
      "minNum": 2,
      "vcores": 1,
      "memoryMb": 16,
      "gpuNum": 1,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  }
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (7, CAST('{
  "name": "wait",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "maxAppAttempts": 1,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 2,
      "minNum": 2,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 50,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 3,
          "maxFailurePolicy": "NONE",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "wait",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": 3600,
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "array": "1,5-40:5"
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (17, CAST('{
  "name": "gang",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "signal": "USR1@1h",
  "maxAppAttempts": 3,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 3,
      "minNum": 3,
      "vcores": 1,
      "memoryMb": 16,
      "gpuNum": 1,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "after": [
    "3:ok",
    "5:any"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (18, CAST('{
  "name": "wait",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "maxAppAttempts": 1,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 2,
      "minNum": 2,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 50,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 3,
          "maxFailurePolicy": "NONE",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "wait",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": 3600,
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "after": [
    "5:fail",
    "6:any"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (20, CAST('{
  "name": "together",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "maxAppAttempts": 2,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "ps",
      "num": 1,
      "minNum": 1,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 1,
          "maxFailurePolicy": "FAIL_APP",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "restartScope": "executor",
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    },
    {
      "roleName": "a",
      "num": 2,
      "minNum": 2,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 4,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    },
    {
      "roleName": "b",
      "num": 2,
      "minNum": 2,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "NONE",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 3600,
    "max": 7200
  },
  "wholeHosts": false,
  "restartScope": "job",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  }
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (21, CAST('{
  "name": "gang",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "signal": "USR1@1h",
  "maxAppAttempts": 3,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 3,
      "minNum": 3,
      "vcores": 1,
      "memoryMb": 16,
      "gpuNum": 1,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "after": [
    "16:ok"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (22, CAST('{
  "name": "wait",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "maxAppAttempts": 1,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 2,
      "minNum": 2,
      "vcores": 0.5,
      "memoryMb": 16,
      "gpuNum": 0,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 50,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 3,
          "maxFailurePolicy": "NONE",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "wait",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": 3600,
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "after": [
    "1:ok",
    "14:any"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (23, CAST('{
  "name": "gang",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "signal": "USR1@1h",
  "maxAppAttempts": 3,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 3,
      "minNum": 3,
      "vcores": 1,
      "memoryMb": 16,
      "gpuNum": 1,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  },
  "after": [
    "5:any",
    "14:fail"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (24, CAST('{
  "name": "gang",
  "queue": "default",
  "priority": 0,
  "preemptible": false,
  "requeue": false,
  "waitForHosts": false,
  "visible": "owner",
  "signal": "USR1@1h",
  "maxAppAttempts": 3,
  "stopGrace": 10,
  "scheduler": {
    "schedulePolicy": {
      "gangPolicy": {}
    }
  },
  "role": [
    {
      "roleName": "w",
      "num": 3,
      "minNum": 3,
      "vcores": 1,
      "memoryMb": 16,
      "gpuNum": 1,
      "portNum": 1,
      "command": "x",
      "inputPolicy": "ENV",
      "successPercent": 100,
      "failover": {
        "commonFailoverPolicy": {
          "restartType": "ON_FAILURE",
          "maxFailureTimes": 2,
          "maxFailurePolicy": "FAIL_ATTEMPT",
          "maxGlobalRoleFailureTimes": 0
        }
      },
      "failPercent": 0,
      "ready": {
        "timeout": 600
      },
      "timeLimit": "infinity",
      "rdma": false,
      "shmMb": 0,
      "cpuPolicy": "shared",
      "numa": "none",
      "fit": "best",
      "memoryHighMb": 0,
      "cpuWeight": 0,
      "tasksMax": 16384,
      "openFiles": 0,
      "lockedMemoryMb": 0
    }
  ],
  "onPartition": "replace",
  "gpuVisibility": "job",
  "newPrivileges": false,
  "timeLimit": "infinity",
  "failureWindow": "infinity",
  "backoff": {
    "initial": 1,
    "max": 60
  },
  "wholeHosts": false,
  "restartScope": "executor",
  "maxGlobalRoleFailureTimes": 0,
  "blacklistConfig": {
    "enabled": false,
    "maxFailedContainerPerNode": 2,
    "blacklistTimeoutMillis": 3600000,
    "maxBlacklistNode": 20
  }
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "executor" VALUES (2, 'w', 0, 1, 7, 'n1', 0, x'3075', '', x'01000000000000000200000000000000', 1, 0, 1795647620069998, 1795647620433701, 1795647626465007, '', '', 0, 1, -1, -1, -1, -1, 'n1 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (2, 'w', 1, 1, 6, 'n1', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647620070001, 0, 1795647620195691, '', '', 0, 0, -1, -1, -1, -1, 'said the agent', '', 0, 0);
INSERT INTO "executor" VALUES (2, 'w', 1, 2, 7, 'n1', 1, x'3175', '', x'01000000000000000200000000000000', 1, 0, 1795647620195771, 1795647622033017, 1795647622033017, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'exit status 75: asks to be requeued', '', 6, 0);
INSERT INTO "executor" VALUES (3, 'w', 0, 1, 7, 'n1', 0, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647620070008, 1795647620412458, 1795647620412459, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'stopped; its host is lost', '', 6, 0);
INSERT INTO "executor" VALUES (3, 'w', 0, 2, 6, 'n2', 0, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647621416673, 0, 1795647622927314, '', '', 0, 0, -1, -1, -1, -1, 'said the agent', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'w', 0, 3, 8, 'n2', 0, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647622927414, 0, 1795647623841953, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'w', 1, 1, 7, 'n1', 1, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647620070009, 0, 1795647620412492, '', '', 0, 1, -1, -1, -1, -1, 'stopped; its host is lost', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'w', 1, 2, 8, 'n2', 1, x'3675', '', x'01000000000000000200000000000000', 1, 0, 1795647621416680, 1795647621691251, 1795647623842015, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'w', 1, 3, 7, 'n2', 1, x'3675', '', x'00000000000000000000000000000000', 1, 0, 1795647623842142, 0, 1795647624579319, '', '', 0, 1, -1, -1, -1, -1, 'stopped, without a record', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'w', 0, 1, 7, 'n1', 0, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647620070011, 0, 1795647620369808, '', '', 0, 1, -1, -1, -1, -1, 'n1 is lost', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'w', 0, 2, 8, 'n2', 0, x'3375', '', x'01000000000000000200000000000000', 1, 0, 1795647621377216, 1795647623155247, 1795647623842025, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'w', 0, 3, 8, 'n2', 0, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647623842129, 0, 1795647624579288, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'w', 1, 1, 7, 'n1', 1, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647620070012, 1795647620353255, 1795647620353256, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'exit status 75: asks to be requeued', '', 6, 0);
INSERT INTO "executor" VALUES (4, 'w', 1, 2, 8, 'n2', 1, x'3475', '', x'01000000000000000200000000000000', 1, 0, 1795647621377219, 1795647623367260, 1795647623842034, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'w', 1, 3, 8, 'n2', 1, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647623842132, 0, 1795647624579311, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 0, 1, 6, 'n2', 0, x'3075', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647620952157, 1795651221016228, 1795651221016228, 'exit-code', '', 6, 0, -1, -1, 0, 0, 'exit status 6', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 0, 2, 5, 'n2', 0, x'3075', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647621016307, 1795651221338841, 1795651221338841, 'success', '', 0, 0, -1, -1, 0, 0, 'exit status 0', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 0, 3, 1, 'n4', 0, x'3c75', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647624579467, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 1, 1, 7, 'n2', 1, x'3175', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647620952161, 1795647621994069, 1795647621994069, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'exit status 75: asks to be requeued', '', 6, 0);
INSERT INTO "executor" VALUES (5, 'w', 1, 2, 6, 'n4', 1, x'3d75', 'GPU-b', x'01000000000000000200000000000000', 1, 0, 1795647624579470, 1795651226671250, 1795651226671250, 'exit-code', '', 5, 0, -1, -1, 0, 0, 'exit status 5', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 1, 3, 1, 'n4', 1, x'3d75', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647626671355, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 2, 1, 8, 'n3', 2, x'3075', 'GPU-a', x'01000000000000000200000000000000', 1, 0, 1795647620952162, 1795647621159675, 1795647621489755, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 2, 2, 7, 'n4', 2, x'3075', 'GPU-a', x'01000000000000000200000000000000', 1, 0, 1795647621489815, 1795647621949096, 1795647622071250, '', '', 0, 1, -1, -1, -1, -1, 'n4 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 2, 3, 8, 'n2', 2, x'3d75', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647624579473, 0, 1795647625863336, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 2, 4, 8, 'n3', 2, x'3675', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647625863492, 0, 1795647625921332, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 3, 1, 8, 'n2', 3, x'3e75', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647624579475, 0, 1795647625863354, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 3, 2, 8, 'n3', 3, x'3775', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647625863496, 0, 1795647625921342, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (6, 'w', 0, 1, 7, 'n1', 0, x'3275', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647621460643, 1795647624426865, 1795647624426865, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'exit status 75: asks to be requeued', '', 6, 0);
INSERT INTO "executor" VALUES (6, 'w', 0, 2, 8, 'n1', 0, x'3175', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647625543354, 0, 1795647626465041, '', '', 0, 0, -1, -1, -1, -1, 'n1 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (6, 'w', 1, 1, 6, 'n1', 1, x'3375', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647621460648, 1795647621565158, 1795647621565158, 'exit-code', '', 6, 0, -1, -1, 0, 0, 'exit status 6', '', 0, 0);
INSERT INTO "executor" VALUES (6, 'w', 1, 2, 8, 'n4', 1, x'3175', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647621565289, 0, 1795647622071283, '', '', 0, 0, -1, -1, -1, -1, 'n4 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (6, 'w', 1, 3, 8, 'n1', 1, x'3275', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647625543362, 0, 1795647626465050, '', '', 0, 0, -1, -1, -1, -1, 'n1 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (6, 'w', 2, 1, 6, 'n2', 2, x'3775', 'GPU-a', x'01000000000000000200000000000000', 1, 0, 1795647621460649, 1795647622423308, 1795647622423308, 'exit-code', '', 5, 0, -1, -1, 0, 0, 'exit status 5', '', 0, 0);
INSERT INTO "executor" VALUES (6, 'w', 2, 2, 7, 'n2', 4294967295, x'3775', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647622423405, 0, 1795647623842042, '', '', 0, 1, -1, -1, -1, -1, 'stopped, without a record', '', 0, 0);
INSERT INTO "executor" VALUES (8, 'w', 0, 1, 6, 'n2', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647622112409, 1795644022360377, 1795644022360377, 'exit-code', '', 5, 0, -1, -1, 0, 0, 'exit status 5', '', 0, 0);
INSERT INTO "executor" VALUES (8, 'w', 0, 2, 7, 'n2', 0, x'', '', x'00000000000000000000000000000000', 1, 0, 1795647622360457, 0, 1795647623579273, '', '', 0, 0, -1, -1, -1, -1, 'said the agent', '', 0, 0);
INSERT INTO "executor" VALUES (8, 'w', 1, 1, 5, 'n2', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647622112415, 1795651223735293, 1795651223735293, 'success', '', 0, 0, -1, -1, 0, 0, 'exit status 0', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 0, 1, 8, 'n2', 0, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647623735437, 0, 1795647623842053, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 0, 2, 6, 'n2', 0, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647623842160, 1795644024232787, 1795644024232787, 'exit-code', '', 1, 0, -1, -1, 0, 0, 'exit status 1', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 1, 1, 8, 'n2', 1, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647623735440, 0, 1795647623842062, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 1, 2, 8, 'n2', 1, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647623842162, 0, 1795647624579378, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (10, 'w', 0, 1, 7, 'n2', 0, x'3975', '', x'00000000000000000000000000000000', 1, 0, 1795647623842168, 0, 1795647624579387, '', '', 0, 1, -1, -1, -1, -1, 'stopped, without a record', '', 0, 0);
INSERT INTO "executor" VALUES (10, 'w', 1, 1, 5, 'n2', 1, x'3a75', '', x'00000000000000000000000000000000', 1, 0, 1795647623842170, 1795647624535641, 1795647624535641, 'success', '', 0, 0, -1, -1, 0, 0, 'exit status 0', '', 0, 0);
INSERT INTO "executor" VALUES (11, 'w', 0, 1, 8, 'n2', 0, x'3b75', '', x'00000000000000000000000000000000', 1, 0, 1795647624232877, 0, 1795647624579399, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (11, 'w', 0, 2, 8, 'n2', 0, x'3b75', '', x'00000000000000000000000000000000', 1, 0, 1795647624579481, 0, 1795647625863362, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (11, 'w', 0, 3, 1, 'n4', 0, x'3775', '', x'00000000000000000000000000000000', 1, 0, 1795647626937565, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (11, 'w', 1, 1, 8, 'n2', 1, x'3c75', '', x'00000000000000000000000000000000', 1, 0, 1795647624232881, 0, 1795647624579404, '', '', 0, 0, -1, -1, -1, -1, 'neither the unit nor a record of it is on the host (rebooted?)', '', 0, 0);
INSERT INTO "executor" VALUES (11, 'w', 1, 2, 8, 'n2', 1, x'3c75', '', x'00000000000000000000000000000000', 1, 0, 1795647624579482, 0, 1795647625863378, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (12, 'w', 0, 1, 3, 'n4', 0, x'3075', '', x'01000000000000000200000000000000', 1, 0, 1795647624297886, 1795647627315262, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (12, 'w', 1, 1, 6, 'n4', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647624297890, 1795644025250062, 1795644025250062, 'exit-code', '', 5, 0, -1, -1, 0, 0, 'exit status 5', '', 0, 0);
INSERT INTO "executor" VALUES (12, 'w', 1, 2, 1, 'n4', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647625250134, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (13, 'w', 0, 1, 1, 'n4', 0, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647624297897, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (13, 'w', 1, 1, 3, 'n4', 1, x'3375', '', x'01000000000000000200000000000000', 1, 0, 1795647624297899, 1795647626993379, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (14, 'w', 0, 1, 8, 'n2', 0, x'4175', '', x'00000000000000000000000000000000', 1, 0, 1795647624579486, 0, 1795647625863388, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (14, 'w', 0, 2, 8, 'n1', 0, x'3375', '', x'01000000000000000200000000000000', 1, 0, 1795647625863504, 1795647626011219, 1795647626465055, '', '', 0, 0, -1, -1, -1, -1, 'n1 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (14, 'w', 1, 1, 8, 'n2', 1, x'4275', '', x'00000000000000000000000000000000', 1, 0, 1795647624579488, 0, 1795647625863395, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (14, 'w', 1, 2, 8, 'n1', 1, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647625863507, 0, 1795647626465062, '', '', 0, 0, -1, -1, -1, -1, 'n1 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (15, 'w', 0, 1, 8, 'n3', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647624639339, 0, 1795647625921293, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (15, 'w', 0, 2, 1, 'n2', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647626331370, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (15, 'w', 1, 1, 8, 'n3', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647624639343, 0, 1795647625921307, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (15, 'w', 1, 2, 1, 'n2', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647626331375, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (16, 'w', 0, 1, 8, 'n3', 0, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647624639348, 0, 1795647625921311, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (16, 'w', 0, 2, 1, 'n2', 0, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647626331381, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (16, 'w', 1, 1, 8, 'n3', 1, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647624639350, 0, 1795647625921315, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (16, 'w', 1, 2, 1, 'n2', 1, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647626331384, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (19, 'w', 0, 1, 8, 'n3', 0, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647624639355, 0, 1795647625921322, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (19, 'w', 0, 2, 1, 'n2', 0, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647626331389, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (19, 'w', 1, 1, 8, 'n3', 1, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647624639357, 0, 1795647625921327, '', '', 0, 0, -1, -1, -1, -1, 'n3 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (19, 'w', 1, 2, 1, 'n2', 1, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647626331391, 0, 0, '', '', 0, 0, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (20, 'a', 0, 1, 8, 'n2', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647625491812, 0, 1795647625863408, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (20, 'a', 1, 1, 7, 'n2', 2, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647625491814, 0, 1795647625863436, '', '', 0, 1, -1, -1, -1, -1, 'n2 was declared dead', '', 7, 0);
INSERT INTO "executor" VALUES (20, 'b', 0, 1, 4, 'n4', 3, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647625491817, 0, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 7, 0);
INSERT INTO "executor" VALUES (20, 'b', 1, 1, 7, 'n4', 4, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647625491818, 0, 1795647627387339, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 7, 0);
INSERT INTO "executor" VALUES (20, 'ps', 0, 1, 8, 'n2', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647625491807, 0, 1795647625863401, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (20, 'ps', 0, 2, 8, 'n1', 0, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647625863512, 0, 1795647626465068, '', '', 0, 0, -1, -1, -1, -1, 'n1 was declared dead', '', 0, 0);
INSERT INTO "event" VALUES (1, 4, 1795647624579336, 'element-failed', '', 0, '1[1] KILLED: killed');
INSERT INTO "event" VALUES (2, 17, 1795647626465027, 'requeued', '', 0, 'it asked to be requeued; waits again (requeue 1), for 1s at least');
INSERT INTO "event" VALUES (3, 18, 1795647624579328, 'job-ended', '', 0, 'KILLED after 4.5s: killed');
INSERT INTO "event" VALUES (4, 22, 1795647626488109, 'executor-waits', 'w', 1, 'starts again in 1s');
INSERT INTO "event" VALUES (5, 25, 1795647626671288, 'executor-failed', 'w', 1, 'attempt 2 on n4: exit status 5');
INSERT INTO "event" VALUES (6, 19, 1795647626465052, 'executor-lost', 'w', 1, 'attempt 3 on n1: n1 was declared dead');
INSERT INTO "event" VALUES (7, 3, 1795647622112544, 'running', '', 0, 'the first of its 9 elements runs');
INSERT INTO "event" VALUES (8, 7, 1795647623735378, 'job-ended', '', 0, 'SUCCEEDED after 1.6s: every required role succeeded');
INSERT INTO "event" VALUES (9, 14, 1795647626488120, 'executor-waits', 'w', 1, 'starts again in 1s');
INSERT INTO "event" VALUES (10, 5, 1795647624579391, 'job-ended', '', 0, 'SUCCEEDED after 737ms: every required role succeeded');
INSERT INTO "event" VALUES (11, 10, 1795647626488123, 'executor-waits', 'w', 1, 'starts again in 1s');
INSERT INTO "event" VALUES (12, 3, 1795647625250086, 'executor-failed', 'w', 1, 'attempt 1 on n4: exit status 5');
INSERT INTO "event" VALUES (13, 3, 1795647627194827, 'rendezvous', '', 0, 'epoch 1: 1 executor told who the peers are now');
INSERT INTO "event" VALUES (14, 11, 1795647626488128, 'executor-waits', 'w', 1, 'starts again in 1s');
INSERT INTO "event" VALUES (15, 4, 1795647625921308, 'executor-lost', 'w', 1, 'attempt 1 on n3: n3 was declared dead');
INSERT INTO "event" VALUES (16, 4, 1795647625921317, 'executor-lost', 'w', 1, 'attempt 1 on n3: n3 was declared dead');
INSERT INTO "event" VALUES (17, 2, 1795647624579363, 'job-ended', '', 0, 'KILLED after 1.2s: job 3 was killed, and this one was to run after its success (after 3:ok)');
INSERT INTO "event" VALUES (18, 1, 1795647623883646, 'submitted', '', 0, 'submitted by uid 1000: 2 executors in 1 role');
INSERT INTO "event" VALUES (19, 4, 1795647625921329, 'executor-lost', 'w', 1, 'attempt 1 on n3: n3 was declared dead');
INSERT INTO "event" VALUES (20, 11, 1795647627387345, 'executor-stopped', 'b', 1, 'attempt 1 on n4: does not die: pid 7 (x) in D state');
INSERT INTO "event" VALUES (21, 1, 1795647625266592, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 1 role');
INSERT INTO "event" VALUES (22, 1, 1795647626175782, 'submitted', '', 0, 'submitted by uid 1000: 2 executors in 1 role');
INSERT INTO "event" VALUES (23, 1, 1795647626577863, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 1 role');
INSERT INTO "event" VALUES (24, 1, 1795647627119630, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 1 role');
INSERT INTO "node" VALUES ('n1', '', 0, '01000000000000000000000000000000', 4, '192.0.2.1', 4, 1073741824, 0, 1795647625779380, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "node" VALUES ('n2', '', 0, '06000000000000000100000000000000', 1, '192.0.2.1', 4, 1073741824, 0, 1795647626512022, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "node" VALUES ('n3', '', 0, '01000000000000000200000000000000', 4, '192.0.2.1', 4, 1073741824, 0, 1795647625779487, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "node" VALUES ('n4', '', 0, '01000000000000000300000000000000', 1, '192.0.2.1', 4, 1073741824, 0, 1795647626512108, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 1, 'w', 12090749, 0, 386895, 0, 17, 17, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 5, 'w', 8054718459, 0, 171812738, 10738296430, 7, 7, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 6, 'w', 7801397, 0, 124819, 7801397, 7, 7, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 7, 'w', 1796823559, 0, 57498345, 0, 21, 21, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 20, 'a', 371609, 0, 11890, 0, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 20, 'b', 947760, 0, 30328, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 20, 'ps', 486575, 0, 15569, 0, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20783, 1000, 'default', 5, 'w', 49022881, 0, 1104420, 69026319, 3, 3, 0, 0);
INSERT INTO "usage" VALUES (20783, 1000, 'default', 7, 'w', 11867646, 0, 379764, 0, 1, 1, 0, 0);
INSERT INTO "change" VALUES (5, 2, 1000, 1795647622211949, 'w.command: x -> y (attempts that begin from now on have it)', '', x'');
INSERT INTO "change" VALUES (5, 3, 1000, 1795647623480547, 'w.num: 3 -> 4', '', x'');
INSERT INTO "change" VALUES (5, 4, 1000, 1795647625491628, 'w.vcores: 1 -> 0.25', '', x'');
INSERT INTO "change" VALUES (6, 2, 1000, 1795647622867628, 'w.num: 3 -> 2', 'w 2 2
', x'');
INSERT INTO "node_hold" VALUES ('n1', 4, 1, 'x', 0, 1795647626835253, -1, -1, 0, '');
INSERT INTO "node_hold" VALUES ('n4', 4, 1, 'b/1 of job 20 does not die: pid 7 (x) in D state', 0, 1795647627387301, -1, -1, 0, '');
INSERT INTO "stuck" VALUES ('n4', 20, 'b', 1, 1, x'c191592b91d5465f92c91ae5dede9112', 1795647627387331, 500, 16777216, '', x'3575', 'pid 7 (x) in D state', 0, 0, '', '');
INSERT INTO "scope" VALUES (20, '', x'0100000001000000f9a0e1ca21610600f9a0e1ca21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "scope" VALUES (20, 'a', x'010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n1', x'02000000000000000100000001000000140ba0ca2161060014dde93522610600020000000000000085258bca2161060002000000e80300000101000000000000accd8dca21610600000000000000000006000000000000000f0ba0ca2161060006000000e8030000010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n2', x'020000000000000000000000000000000000000000000000000000000000000003000000000000005c2dacca2161060008000000e8030000010100000000000007d4b4ca2161060003000000e8030000010100000000000076bfc8ca2161060009000000e8030000010100000000000076bfc8ca2161060009000000e8030000010100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n4', x'02000000000000000000000000000000000000000000000000000000000000000200000000000000f16f8cca21610600000000000000000006000000000000002b45d8ca216106000c000000e8030000010100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
CREATE INDEX job_active ON job(number) WHERE ended = 0;
CREATE INDEX job_owner ON job(owner, number);
CREATE INDEX job_element ON job(array, idx, number) WHERE array > 0;
CREATE INDEX usage_job ON usage(job) WHERE job > 0;
COMMIT;
