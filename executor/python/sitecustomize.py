# SPDX-License-Identifier: Apache-2.0
"""What every Python of an executor runs first, by way of PYTHONPATH (starter/unit/environment.c): it says where it is when it
is asked, as after import primus. Then it steps aside: out of sys.path, and for a sitecustomize that the environment has itself.
Also read by Python 2, which then does no more than step aside."""
import os
import sys


def _say_where():
    try:
        import _primus_stacks
        _primus_stacks.register()
    except Exception:  # a program is not to end of it
        pass


def _step_aside():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401, the one behind ours
    except ImportError as e:
        if getattr(e, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


_say_where()
_step_aside()
