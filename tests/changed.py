#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `tools/check --changed` runs: tests/changed.py [BASE]

Prints, a line each, what the difference from BASE (main; on main what is behind the published one, or the last commit), the working tree
and its new files included, can break: "base COMMIT", "file PATH" for each changed one, "suite NAME" (unit, cli, python) and "cluster TEST".
The tests of a room are the few that would see its first mistakes, on a cluster that they share: all of them together take two minutes.
"""
import fnmatch
import os
import subprocess
import sys

# What any change of a daemon runs: a job, its end, its log, its data; a kill of the master.
SMOKE = "test_policies.py::test_attempts_are_counted_across_a_kill_of_masterd test_policies.py::test_second_attempt_may_succeed " \
        "test_logs.py::test_first_traceback test_submit_kept.py::test_killed_around_a_kill"

# path (fnmatch, the first that fits) -> suites, tests on hosts.
TABLE = (
    ("masterd/sched/*", "unit", f"{SMOKE} test_policies.py::test_two_gangs_do_not_deadlock test_policies.py::test_order"),
    ("masterd/queue/*", "unit", f"{SMOKE} test_policies.py::test_gang_starts_together_after_room_was_made test_policies.py::test_order"),
    ("masterd/job/*", "unit", f"{SMOKE} test_policies.py::test_success_percent test_policies.py::test_restart_never"),
    ("masterd/life/*", "unit", f"{SMOKE} test_policies.py::test_kill_gives_grace test_array.py::test_kill_of_an_array test_suspend.py::test_a_job_that_waits"),
    ("masterd/data/*", "unit", f"{SMOKE} test_data_feeding.py::test_enough_is_enough test_data_feeding.py::test_starved"),
    ("masterd/feed/*", "unit", f"{SMOKE} test_data_feeding.py::test_enough_is_enough test_savepoint.py::test_one_worker_goes_on_where_it_was"),
    ("masterd/node/*", "unit", f"{SMOKE} test_hosts.py::test_cordon test_hosts.py::test_labels"),
    ("masterd/fleet/*", "unit", f"{SMOKE} test_hosts.py::test_cordon test_hosts.py::test_labels test_hosts_lost.py::test_dead_executor_runs_again_at_once"),
    ("masterd/health/*", "unit", f"{SMOKE} test_health.py::test_idle_is_stopped"),
    ("masterd/watch/*", "unit", f"{SMOKE} test_health.py::test_idle_is_stopped"),
    ("masterd/spec/*", "unit cli", f"{SMOKE} test_bad_input.py"),
    ("masterd/admit/*", "unit cli", f"{SMOKE} test_bad_input.py test_array.py::test_bad_options"),
    ("masterd/store/*", "unit", f"{SMOKE} test_submit_kept.py"),
    ("masterd/recover/*", "unit", f"{SMOKE} test_submit_kept.py test_no_record.py"),
    ("masterd/relay/*", "unit", f"{SMOKE} test_logs.py::test_every_attempt test_session.py::test_output_errors_and_status test_artifacts.py::test_an_array"),
    ("masterd/link/*", "unit", f"{SMOKE} test_join.py::test_tokens_that_are_none test_join.py::test_a_removed_node"),
    ("masterd/api/*", "unit cli", f"{SMOKE} test_bus.py test_security.py::test_malformed_calls"),
    ("masterd/caller/*", "unit", f"{SMOKE} test_bus.py test_audit.py::test_each_changing_call_has_one_line"),
    ("masterd/*", "unit", f"{SMOKE} test_bus.py"),
    ("agentd/log/*", "unit", f"{SMOKE} test_logs.py::test_every_attempt test_logs.py::test_all_executors_together test_logs.py::test_bytes_and_long_lines"),
    ("agentd/feed/*", "unit", f"{SMOKE} test_data_feeding.py::test_enough_is_enough"),
    ("agentd/session/*", "unit", f"{SMOKE} test_session.py::test_output_errors_and_status test_run_stdio.py::test_it_goes_through"),
    ("agentd/executors/*", "unit", f"{SMOKE} test_units.py::test_nothing_is_left_of_a_job test_policies.py::test_kill_gives_grace"),
    ("agentd/unit/*", "unit", f"{SMOKE} test_units.py test_services.py::test_units_have_no_faults"),
    ("agentd/capture/*", "unit", f"{SMOKE} test_trace.py::test_stopped"),
    ("agentd/metrics/*", "unit", f"{SMOKE} test_metrics.py::test_values_of_executors"),
    ("agentd/*", "unit", f"{SMOKE} test_units.py::test_nothing_is_left_of_a_job"),
    ("bpf/*", "unit", "test_probe.py::test_a_moment_is_enough test_probe.py::test_network"),
    ("executor/*", "unit python", f"{SMOKE} test_data_feeding.py::test_enough_is_enough"),
    ("webd/*", "unit", "test_web.py"),
    ("session/*", "unit", "test_session.py::test_output_errors_and_status test_run_stdio.py::test_it_goes_through test_run_stdio.py::test_a_shell"),
    ("starter/*", "unit", f"{SMOKE} test_units.py::test_nothing_is_left_of_a_job test_services.py::test_agentd_may_nothing"),
    ("lib/primus/python/primus/actors/*", "python", "test_actors.py::test_counters test_actors.py::test_listed test_parl.py"),
    ("lib/primus/python/primus/parl/*", "python", "test_parl.py"),
    ("lib/primus/*", "unit python", "test_data_feeding.py::test_enough_is_enough"),
    ("lib/policy/*", "unit", SMOKE),
    ("lib/*", "unit cli", f"{SMOKE} test_bus.py"),
    ("python/*", "python", ""),
    ("tools/primusctl/*", "unit cli", "test_cli.py::test_list test_ssh.py::test_run test_policies.py::test_second_attempt_may_succeed"),
    ("tools/state/*", "unit", "test_backup.py::test_refusals"),
    ("tools/providers/*", "unit", "test_provider_nspawn.py"),
    ("tools/join/*", "unit cli", "test_first_contact.py::test_two_hosts test_provider_nspawn.py"),
    ("tools/quickstart", "", "test_quickstart.py::test_trains_and_shows_it"),
    ("tools/sandbox*", "unit", "test_sandbox.py"),
    ("units/*", "unit", f"{SMOKE} test_services.py"),
    ("dbus/*", "unit", f"{SMOKE} test_bus.py"),
    ("examples/*", "unit", ""),
    ("tests/python/*", "python", ""),
    ("tests/cli/*", "cli", ""),
    ("tests/cluster/test_*.py", "", "{name}"),
    ("tests/cluster/*", "", SMOKE),
    ("*.md", "unit", ""),
    ("*", "unit", ""),
)


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def base_of(name):
    if name:
        return git("merge-base", name, "HEAD").strip()
    head = git("rev-parse", "HEAD").strip()
    for published in ("origin/main", "main", "HEAD~1"):
        if subprocess.run(["git", "rev-parse", "-q", "--verify", published], capture_output=True, check=False).returncode == 0:
            base = git("merge-base", published, "HEAD").strip()
            if base != head or git("status", "--porcelain"):
                return base
    return head


def fits(path):
    for pattern, suites, tests in TABLE:
        if fnmatch.fnmatchcase(path, pattern):
            return suites.split(), tests.format(name=os.path.basename(path)).split()
    raise AssertionError(path)


def wanted(paths):
    """The suites, and tests on hosts; a whole file stands for those of it that are named, too."""
    suites, tests = [], []
    for path in paths:
        for found, all_of_them in zip(fits(path), (suites, tests)):
            all_of_them += [one for one in found if one not in all_of_them]
    return suites, [one for one in tests if "::" not in one or one.split("::")[0] not in tests]


def check():
    """That the table's tests are there, for the suite of repository checks."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster")
    for pattern, _, tests in TABLE:
        for test in tests.split():
            name, _, function = test.partition("::")
            if name == "{name}":
                continue
            with open(os.path.join(here, name)) as f:
                if function and f"\ndef {function}(" not in f.read():
                    sys.exit(f"tests/changed.py: {pattern}: there is no {test}")
    return 0


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    base = base_of(sys.argv[1] if len(sys.argv) > 1 else "")
    paths = sorted({*git("diff", "--name-only", "--no-renames", "-z", base).split("\0"),
                    *git("ls-files", "--others", "--exclude-standard", "-z").split("\0")} - {""})
    suites, tests = wanted(paths)
    print("base", base)
    for path in paths:
        print("file", path)
    for suite in suites:
        print("suite", suite)
    for test in tests:
        if os.path.exists(f"tests/cluster/{test.split('::')[0]}"):
            print("cluster", test)
    return 0


sys.exit(main())
