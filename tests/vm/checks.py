# SPDX-License-Identifier: Apache-2.0
"""What runs inside a machine: "ok - WHAT" or "not ok - WHAT" a line, "finished" as the last one."""
import time
import traceback


class Failed(Exception):
    pass


def need(what, condition, seen=""):
    if not condition:
        raise Failed(f"{what}: {seen}")


def wait_for(what, predicate, seconds=120):
    end = time.monotonic() + seconds
    while not (value := predicate()):
        need(what, time.monotonic() < end, f"not within {seconds} s")
        time.sleep(0.2)
    return value


def run(checks, *arguments):
    """Each check is a function; its docstring is what it says."""
    for check in checks:
        started = time.monotonic()
        try:
            check(*arguments)
            print(f"ok - {check.__doc__}", flush=True)
        except Failed as e:
            print(f"not ok - {check.__doc__}: {e}", flush=True)
        except Exception:  # a check that breaks is one that fails
            traceback.print_exc()
            print(f"not ok - {check.__doc__}: see above", flush=True)
        print(f"   ({time.monotonic() - started:.0f} s)", flush=True)
    print("finished", flush=True)
