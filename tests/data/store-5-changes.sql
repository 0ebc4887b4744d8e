-- SPDX-License-Identifier: Apache-2.0
-- What primus-masterd 0.1.0 had on disk: run 117 of test-recovery, but for events that nobody reads back.
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
INSERT INTO "counter" VALUES ('last_job', 20);
INSERT INTO "job" VALUES (1, x'1a1b7c7f4ed04262b5b633f8f102f9aa', 1000, 'wait', 6, 1, 1795647876825249, 1795647876825391, 1795647883755644, 'every required role succeeded', '', 0, x'0205000000000000a100d7d92161060000000000000000002f01d7d921610600a100d7d92161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000009f8c28257f8bb2320000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (2, x'697173bbc49b4d32b29b6cb98d2646e2', 1000, 'together', 1, 2, 1795647877551641, 1795647877551813, 0, 'it asked to be requeued', '', 255, x'02040000000000005caa10da216106000100000001000000000000000000000060aa10da21610600604ea4b0226106000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000000d06cbc8bd1df7e90000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (3, x'56423fa26ce8417eb7275dd9a196cbeb', 1000, 'together', 8, 1, 1795647877710214, 1795647878001181, 1795647883245155, 'killed', '', 3, x'02070000000000008681e4d92161060000000000000000001df2e8d9216106008681e4d92161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000000e2d9f2dc09c070d0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (4, x'd02eef4b45de4d5cb75d8e8d6b1513bb', 1000, 'together', 2, 2, 1795647878147723, 1795647878147926, 0, 'the job starts again: a/0 has ended: n2 was declared dead', '', 255, x'0204000000000000cdad5dda216106000100000000000000a08367da216106008b2eebd92161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000003000000000000003bed515cc9d341e30000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (5, x'3df2c0d9ef9c4aaca2fa8f2d352fe136', 1000, 'gang', 5, 1, 1795647878194039, 1795647886295981, 0, 'requeued by hand', '', 255, x'020400010000000077e3ebd9216106000000000000000000ad8367da2161060077e3ebd9216106000000000000000000fb5921b122610600000000000400000000000000000000000000000000000000000000000000000001000000000000001b4a48434b216d1b0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (6, x'370d663d736948639de3d04984db81f5', 1000, 'wait', 5, 1, 1795647879415631, 1795647886295990, 0, 'killed', '', 255, x'02070000000000004f87fed921610600000000000000000000000000000000004f87fed921610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (7, x'79dcf232df614c48ab7d54c55d563d5f', 1000, 'wait', 5, 1, 1795647879415852, 1795647886295987, 0, 'array 6 is being stopped: killed', '', 255, x'02070000000000002c88fed9216106000000000000000000b38367da216106002c88fed9216106000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000af3e7ff659e0139e0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 6, 0);
INSERT INTO "job" VALUES (8, x'd5ebf5b464114f8e9e4f7e5c0082a8a7', 1000, 'wait', 5, 1, 1795647879415863, 1795647886296000, 0, 'array 6 is being stopped: killed', '', 255, x'02070000000000003788fed9216106000000000000000000c08367da216106003788fed921610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000010000000000000073d0dcfc29a1a0500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 6, 1);
INSERT INTO "job" VALUES (9, x'e7171cb206d040ebaf40831cdd0130fa', 1000, 'wait', 5, 1, 1795647879415868, 1795647886296004, 0, 'array 6 is being stopped: killed', '', 255, x'02070000000000003c88fed9216106000000000000000000c48367da216106003c88fed92161060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001000000000000003725c65efaced58b0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 6, 2);
INSERT INTO "job" VALUES (10, x'7f2e42048d394af9ba2115a9b61d63cd', 1000, 'gang', 1, 1, 1795647880486371, 0, 0, 'role w: no usable node is there for it', '', 255, x'0200000000000000e3dd0eda2161060000000000000000000000000000000000e3dd0eda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (11, x'561730b00d5742829c8a9696594a9084', 1000, 'gang', 1, 1, 1795647881305965, 0, 0, 'after job 7 (STOPPING)', '', 255, x'02000000000000006d5f1bda21610600000000000000000000000000000000006d5f1bda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (12, x'f56c6d5e462342689f22cba19463a481', 1000, 'order', 1, 1, 1795647881972499, 0, 0, 'role ps: no usable node is there for it', '', 255, x'0200000000000000138b25da2161060000000000000000000000000000000000138b25da21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (13, x'1e9083fa65ba456389dedcb567894bb6', 1000, 'wait', 1, 1, 1795647883514187, 0, 0, '', '', 255, x'02000000000000004b113dda21610600000000000000000000000000000000004b113dda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (14, x'637a30895d9f47238b5ea15e7c96b251', 1000, 'wait', 1, 1, 1795647883514404, 0, 0, 'role w: no usable node is there for it', '', 255, x'020000000000000024123dda216106000000000000000000000000000000000024123dda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 13, 0);
INSERT INTO "job" VALUES (15, x'e9a46cbb4d0b466b99bba6c758dfaa76', 1000, 'wait', 1, 1, 1795647883514414, 0, 0, 'role w: no usable node is there for it', '', 255, x'02000000000000002e123dda21610600000000000000000000000000000000002e123dda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 13, 1);
INSERT INTO "job" VALUES (16, x'bcc87191fd984b929aed0524b9821a6b', 1000, 'wait', 1, 1, 1795647883514420, 0, 0, 'role w: no usable node is there for it', '', 255, x'020000000000000034123dda216106000000000000000000000000000000000034123dda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 13, 2);
INSERT INTO "job" VALUES (17, x'e484827efeac47f3bdf6f383a30772b0', 1000, 'wait', 1, 1, 1795647887691617, 0, 0, 'role w: no usable node is there for it', '', 255, x'020000000000000061cf7cda216106000000000000000000000000000000000061cf7cda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (18, x'5e603f3fd4854c65ad35948d8a68cba2', 1000, 'gang', 1, 1, 1795647888334234, 0, 0, 'after job 4 (STARTING)', '', 255, x'02000000000000009a9d86da21610600000000000000000000000000000000009a9d86da21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (19, x'f022574677814e7f8409ca4fa3d6daf1', 1000, 'wait', 1, 1, 1795647888454628, 0, 0, 'after job 11 (QUEUED), job 17 (QUEUED)', '', 255, x'0200000000000000e47388da2161060000000000000000000000000000000000e47388da21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
INSERT INTO "job" VALUES (20, x'48d7bd7ea1434230946b239c4c900e4b', 1000, 'wait', 1, 1, 1795647889200463, 0, 0, 'after job 2 (QUEUED), job 8 (STOPPING)', '', 255, x'02000000000000004fd593da21610600000000000000000000000000000000004fd593da21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000', 0, 0);
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
  }
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (2, CAST('{
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
INSERT INTO "job_body" VALUES (3, CAST('{
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
INSERT INTO "job_body" VALUES (4, CAST('{
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
INSERT INTO "job_body" VALUES (6, CAST('{
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
INSERT INTO "job_body" VALUES (10, CAST('{
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
INSERT INTO "job_body" VALUES (11, CAST('{
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
    "7:any"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (12, CAST('{
  "name": "order",
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
      "orderPolicy": {
        "rolePolicy": [
          {
            "roleName": "ps",
            "scheduleType": "GANG"
          },
          {
            "roleName": "w",
            "scheduleType": "GANG"
          }
        ]
      }
    }
  },
  "role": [
    {
      "roleName": "ps",
      "num": 1,
      "minNum": 1,
      "vcores": 1,
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
      "roleName": "w",
      "num": 2,
      "minNum": 2,
      "vcores": 1,
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
INSERT INTO "job_body" VALUES (13, CAST('{
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
INSERT INTO "job_body" VALUES (17, CAST('{
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
  }
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (18, CAST('{
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
    "4:fail"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (19, CAST('{
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
    "11:fail",
    "17:fail"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "job_body" VALUES (20, CAST('{
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
    "2",
    "8:fail"
  ]
}' AS BLOB), x'', x'', x'', x'', x'', '');
INSERT INTO "executor" VALUES (1, 'w', 0, 1, 6, 'n1', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647876825382, 1795651476992623, 1795651476992623, 'exit-code', '', 1, 0, -1, -1, 0, 0, 'exit status 1', '', 0, 0);
INSERT INTO "executor" VALUES (1, 'w', 0, 2, 5, 'n1', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647876992712, 1795644277926888, 1795644277926888, 'success', '', 0, 0, -1, -1, 0, 0, 'exit status 0', '', 0, 0);
INSERT INTO "executor" VALUES (1, 'w', 1, 1, 7, 'n1', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647876825387, 1795647883755604, 1795647883755604, 'success', '', 0, 1, -1, -1, 0, 0, 'stopped, exit status 0', '', 0, 0);
INSERT INTO "executor" VALUES (2, 'a', 0, 1, 7, 'n3', 1, x'3175', '', x'01000000000000000200000000000000', 1, 0, 1795647877551806, 1795647879777898, 1795647879777898, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'stopped, exit status 75', '', 0, 0);
INSERT INTO "executor" VALUES (2, 'a', 1, 1, 7, 'n3', 2, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647877551808, 1795647878080746, 1795647878080746, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'exit status 75: asks to be requeued', '', 6, 0);
INSERT INTO "executor" VALUES (2, 'b', 0, 1, 7, 'n3', 3, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647877551809, 1795647878539484, 1795647878539484, 'exit-code', '', 3, 1, -1, -1, 0, 0, 'stopped, exit status 3', '', 0, 0);
INSERT INTO "executor" VALUES (2, 'b', 1, 1, 7, 'n3', 4, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647877551810, 1795644278799664, 1795644278799664, 'exit-code', '', 75, 1, -1, -1, 0, 0, 'stopped, exit status 75', '', 0, 0);
INSERT INTO "executor" VALUES (2, 'ps', 0, 1, 7, 'n3', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647877551802, 0, 1795647880604238, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'a', 0, 1, 7, 'n3', 1, x'3675', '', x'00000000000000000000000000000000', 1, 0, 1795647878001172, 0, 1795647880070344, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'a', 1, 1, 7, 'n3', 2, x'3775', '', x'00000000000000000000000000000000', 1, 0, 1795647878001174, 0, 1795647878603612, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'b', 0, 1, 7, 'n2', 3, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647878001175, 1795644279667360, 1795644279667360, 'exit-code', '', 5, 1, -1, -1, 0, 0, 'stopped, exit status 5', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'b', 1, 1, 7, 'n2', 4, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647878001177, 1795651478409748, 1795651478409748, 'success', '', 0, 1, -1, -1, 0, 0, 'stopped, exit status 0', '', 0, 0);
INSERT INTO "executor" VALUES (3, 'ps', 0, 1, 7, 'n3', 0, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647878001166, 1795647883245104, 1795647883245104, 'exit-code', '', 7, 1, -1, -1, 0, 0, 'stopped, exit status 7', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'a', 0, 1, 7, 'n2', 1, x'3275', '', x'00000000000000000000000000000000', 1, 0, 1795647878147918, 0, 1795647878991307, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 7, 0);
INSERT INTO "executor" VALUES (4, 'a', 0, 2, 8, 'n2', 0, x'3075', '', x'00000000000000000000000000000000', 1, 0, 1795647886295828, 0, 1795647887610106, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'a', 1, 1, 6, 'n2', 2, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647878147920, 0, 1795647878248739, '', '', 0, 0, -1, -1, -1, -1, 'said the agent', '', 0, 0);
INSERT INTO "executor" VALUES (4, 'a', 1, 2, 7, 'n2', 1, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647886295832, 0, 1795647887610143, '', '', 0, 1, -1, -1, -1, -1, 'n2 was declared dead', '', 7, 0);
INSERT INTO "executor" VALUES (4, 'b', 0, 1, 7, 'n2', 2, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647878147922, 0, 1795647885651391, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 7, 0);
INSERT INTO "executor" VALUES (4, 'b', 0, 2, 7, 'n2', 2, x'3475', '', x'01000000000000000200000000000000', 1, 0, 1795647886295835, 1795647887371273, 1795647887610148, '', '', 0, 1, -1, -1, -1, -1, 'n2 was declared dead', '', 7, 0);
INSERT INTO "executor" VALUES (4, 'b', 1, 1, 7, 'n2', 4, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647878147923, 0, 1795647878673538, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 7, 0);
INSERT INTO "executor" VALUES (4, 'b', 1, 2, 7, 'n2', 3, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647886295837, 0, 1795647887610152, '', '', 0, 1, -1, -1, -1, -1, 'n2 was declared dead', '', 7, 0);
INSERT INTO "executor" VALUES (4, 'ps', 0, 1, 7, 'n3', 4294967295, x'3875', '', x'00000000000000000000000000000000', 1, 0, 1795647878147914, 0, 1795647885101706, '', '', 0, 1, -1, -1, -1, -1, 'does not die: pid 7 (x) in D state', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 0, 1, 8, 'n2', 0, x'3675', 'GPU-a', x'00000000000000000000000000000000', 1, 0, 1795647886295851, 0, 1795647887610160, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 1, 1, 8, 'n2', 1, x'3775', 'GPU-b', x'00000000000000000000000000000000', 1, 0, 1795647886295854, 0, 1795647887610168, '', '', 0, 0, -1, -1, -1, -1, 'n2 was declared dead', '', 0, 0);
INSERT INTO "executor" VALUES (5, 'w', 2, 1, 4, 'n3', 2, x'3075', 'GPU-a', x'01000000000000000200000000000000', 1, 0, 1795647886295855, 1795647887183281, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (7, 'w', 0, 1, 6, 'n3', 0, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647886295860, 1795644287466482, 1795644287466482, 'exit-code', '', 3, 0, -1, -1, 0, 0, 'exit status 3', '', 0, 0);
INSERT INTO "executor" VALUES (7, 'w', 0, 2, 4, 'n3', 0, x'3175', '', x'00000000000000000000000000000000', 1, 0, 1795647887466563, 0, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (7, 'w', 1, 1, 7, 'n3', 1, x'3275', '', x'01000000000000000200000000000000', 1, 0, 1795647886295863, 1795651490267398, 1795651490267398, 'exit-code', '', 1, 1, -1, -1, 0, 0, 'stopped, exit status 1', '', 0, 0);
INSERT INTO "executor" VALUES (8, 'w', 0, 1, 6, 'n3', 0, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647886295867, 1795644288574658, 1795644288574658, 'oom-kill', '', 137, 0, -1, -1, 0, 0, 'out of memory (limit 16M)', '', 0, 0);
INSERT INTO "executor" VALUES (8, 'w', 0, 2, 4, 'n3', 0, x'3375', '', x'00000000000000000000000000000000', 1, 0, 1795647888574794, 0, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (8, 'w', 1, 1, 4, 'n3', 1, x'3475', '', x'00000000000000000000000000000000', 1, 0, 1795647886295869, 0, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 0, 1, 4, 'n3', 0, x'3575', '', x'00000000000000000000000000000000', 1, 0, 1795647886295873, 0, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 1, 1, 6, 'n3', 1, x'3675', '', x'01000000000000000200000000000000', 1, 0, 1795647886295876, 1795644289799329, 1795644289799329, 'exit-code', '', 1, 0, -1, -1, 0, 0, 'exit status 1', '', 0, 0);
INSERT INTO "executor" VALUES (9, 'w', 1, 2, 4, 'n3', 1, x'3675', '', x'00000000000000000000000000000000', 1, 0, 1795647889799515, 0, 0, '', '', 0, 1, -1, -1, -1, -1, '', '', 0, 0);
INSERT INTO "event" VALUES (1, 7, 1795647883755649, 'job-ended', '', 0, 'SUCCEEDED after 6.9s: every required role succeeded');
INSERT INTO "event" VALUES (2, 13, 1795647885766066, 'changed', '', 0, 'version 2 by uid 1000: role ps removed');
INSERT INTO "event" VALUES (3, 10, 1795647883245159, 'job-ended', '', 0, 'KILLED after 5.2s: killed');
INSERT INTO "event" VALUES (4, 22, 1795647887610154, 'executor-stopped', 'b', 1, 'attempt 2 on n2: n2 was declared dead');
INSERT INTO "event" VALUES (5, 8, 1795647890443398, 'host-silent', 'w', 2, 'nothing has been heard of n3 for 3s; it is given up in 56s');
INSERT INTO "event" VALUES (6, 3, 1795647886295990, 'running', '', 0, 'the first of its 9 elements runs');
INSERT INTO "event" VALUES (7, 5, 1795647890443404, 'host-silent', 'w', 0, 'nothing has been heard of n3 for 3s; it is given up in 56s');
INSERT INTO "event" VALUES (8, 4, 1795647890443401, 'host-silent', 'w', 1, 'nothing has been heard of n3 for 3s; it is given up in 56s');
INSERT INTO "event" VALUES (9, 5, 1795647890443403, 'host-silent', 'w', 0, 'nothing has been heard of n3 for 3s; it is given up in 56s');
INSERT INTO "event" VALUES (10, 1, 1795647880486408, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 1 role');
INSERT INTO "event" VALUES (11, 1, 1795647881306023, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 1 role');
INSERT INTO "event" VALUES (12, 1, 1795647881972598, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 2 roles');
INSERT INTO "event" VALUES (13, 2, 1795647883514244, 'array', '', 0, 'an array of 9 elements');
INSERT INTO "event" VALUES (14, 1, 1795647883514406, 'submitted', '', 0, 'element 0 of array 13');
INSERT INTO "event" VALUES (15, 1, 1795647883514415, 'submitted', '', 0, 'element 1 of array 13');
INSERT INTO "event" VALUES (16, 1, 1795647883514420, 'submitted', '', 0, 'element 2 of array 13');
INSERT INTO "event" VALUES (17, 1, 1795647887691732, 'submitted', '', 0, 'submitted by uid 1000: 2 executors in 1 role');
INSERT INTO "event" VALUES (18, 1, 1795647888334299, 'submitted', '', 0, 'submitted by uid 1000: 3 executors in 1 role');
INSERT INTO "event" VALUES (19, 1, 1795647888454689, 'submitted', '', 0, 'submitted by uid 1000: 2 executors in 1 role');
INSERT INTO "event" VALUES (20, 1, 1795647889200526, 'submitted', '', 0, 'submitted by uid 1000: 2 executors in 1 role');
INSERT INTO "node" VALUES ('n1', '', 0, '01000000000000000000000000000000', 1, '192.0.2.1', 4, 1073741824, 0, 1795647890719709, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "node" VALUES ('n2', '', 0, '01000000000000000100000000000000', 4, '192.0.2.1', 4, 1073741824, 0, 1795647886295700, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "node" VALUES ('n3', '', 0, '01000000000000000200000000000000', 3, '192.0.2.1', 4, 1073741824, 0, 1795647886295795, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "node" VALUES ('n4', '', 0, '01000000000000000300000000000000', 4, '192.0.2.1', 4, 1073741824, 0, 1795647875544675, CAST('30000 30099
GPU-a
GPU-b
' AS BLOB), '', 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 1, 'w', 1665052417, 0, 53281676, 0, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 2, 'a', 1377515, 0, 44080, 0, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 2, 'b', 493837, 0, 15802, 0, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 2, 'ps', 1526218, 0, 48838, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 3, 'a', 1335805, 0, 42745, 0, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 3, 'b', 1660999411, 0, 53151981, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 3, 'ps', 2621969, 0, 83903, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 4, 'a', 1786397, 0, 57163, 0, 4, 4, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 4, 'b', 5328854, 0, 170522, 0, 4, 4, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 4, 'ps', 3476896, 0, 111260, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 5, 'w', 2628623, 0, 42057, 2628623, 2, 2, 0, 0);
INSERT INTO "usage" VALUES (20782, 1000, 'default', 6, 'w', 1656852068, 0, 53019266, 0, 3, 3, 0, 0);
INSERT INTO "usage" VALUES (20783, 1000, 'default', 1, 'w', 138496311, 0, 4431881, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20783, 1000, 'default', 3, 'b', 139204874, 0, 4454555, 0, 1, 1, 0, 0);
INSERT INTO "usage" VALUES (20783, 1000, 'default', 6, 'w', 145133699, 0, 4644278, 0, 1, 1, 0, 0);
INSERT INTO "change" VALUES (2, 2, 1000, 1795647885766053, 'role ps removed', 'ps 0 1
', CAST('{
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
}' AS BLOB));
INSERT INTO "change" VALUES (4, 2, 1000, 1795647879072497, 'role ps removed', 'ps 0 1
', CAST('{
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
}' AS BLOB));
INSERT INTO "node_hold" VALUES ('n1', 0, 0, 'somebody said so', 2, 1795647877467256, 0, -1, 2, '');
INSERT INTO "node_hold" VALUES ('n4', 0, 0, 'somebody said so', 2, 1795647875765710, -1, 1000000, 1, '');
INSERT INTO "node_label" VALUES ('n2', 'k', 'a');
INSERT INTO "node_label" VALUES ('n4', 'k', 'b');
INSERT INTO "node_window" VALUES ('n2', 1795655079970664, 1795658679970664, 'window', 0);
INSERT INTO "scope" VALUES (4, '', x'01000000010000000b917bda216106000b917bda21610600000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "scope" VALUES (4, 'a', x'010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n1', x'02000000000000000000000000000000000000000000000000000000000000000100000000000000928ed9d92161060001000000e8030000010100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n2', x'0200000000000000000000000000000000000000000000000000000000000000010000000000000039b9ecd92161060004000000e8030000010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n3', x'02000000000000000000000000000000000000000000000000000000000000000200000000000000146079da2161060007000000e80300000101000000000000d4f89cda2161060009000000e8030000000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "blame" VALUES ('n4', x'0200000000000000000000000000000000000000000000000000000000000000010000000000000025a36ada216106000000000000000000060000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
CREATE INDEX job_active ON job(number) WHERE ended = 0;
CREATE INDEX job_owner ON job(owner, number);
CREATE INDEX job_element ON job(array, idx, number) WHERE array > 0;
CREATE INDEX usage_job ON usage(job) WHERE job > 0;
COMMIT;
