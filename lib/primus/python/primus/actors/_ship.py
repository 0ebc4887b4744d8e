# SPDX-License-Identifier: Apache-2.0
"""How a class or a function gets to the other process: by the name that it has in its module, or, of what only the script itself has
(__main__, a notebook, a closure), by value with cloudpickle."""
import pickle
import sys


def by_name(thing):
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "")
    if module in (None, "__main__", "__mp_main__") or "<" in name:
        return False
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing or getattr(found, "_primus_class", None) is thing  # behind the decorator


def shipped(thing):
    """Bytes, for taken()."""
    if by_name(thing):
        return pickle.dumps((thing.__module__, thing.__qualname__), 5)
    try:
        import cloudpickle
    except ImportError:
        raise pickle.PicklingError(f"{thing.__qualname__} is known to this script alone (it is in {thing.__module__}): put it into a module, "
                                   "or install cloudpickle (Debian: python3-cloudpickle)") from None
    return cloudpickle.dumps(thing, 5)


def taken(data):
    thing = pickle.loads(data)
    if isinstance(thing, tuple):
        module, name = thing
        __import__(module)
        thing = sys.modules[module]
        for part in name.split("."):
            thing = getattr(thing, part)
        thing = getattr(thing, "_primus_class", thing)  # what the decorator was put on
    return thing
