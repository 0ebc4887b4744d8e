# SPDX-License-Identifier: Apache-2.0
"""What runs inside a machine: "ok - WHAT" or "not ok - WHAT" a line, "finished" as the last one."""
import time
import traceback


class Failed(Exception):
    pass


def need(what, condition, seen=""):
    if not condition:
        raise Failed(f"{what}: {seen}")


def wait_for(what, predicate, seconds=120, pause=0.2):
    end = time.monotonic() + seconds
    while not (value := predicate()):
        need(what, time.monotonic() < end, f"not within {seconds} s")
        time.sleep(pause)
    return value


def run(checks, *arguments):
    """Each check is a function; its docstring is what it says. Without the first one the others are not tried."""
    for check in checks:
        failed, started = True, time.monotonic()
        try:
            check(*arguments)
            print(f"ok - {check.__doc__}", flush=True)
            failed = False
        except Failed as e:
            print(f"not ok - {check.__doc__}: {e}", flush=True)
        except Exception:  # a check that breaks is one that fails
            traceback.print_exc()
            print(f"not ok - {check.__doc__}: see above", flush=True)
        print(f"   ({time.monotonic() - started:.0f} s)", flush=True)
        if failed and check is checks[0]:
            break
    print("finished", flush=True)
