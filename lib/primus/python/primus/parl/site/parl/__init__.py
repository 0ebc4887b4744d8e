# SPDX-License-Identifier: Apache-2.0
"""parl, with the remote objects of Primus. Where PARL itself is installed, all the rest of it (Agent, Model, utils, ...) is that one's."""
import importlib.machinery
import os
import sys


def _installed():
    """The directory of PARL itself, or None."""
    for entry in sys.path:
        found = os.path.join(entry, "parl")
        if os.path.isfile(os.path.join(found, "__init__.py")) and not os.path.samefile(found, __path__[0]):
            return found
    return None


_theirs = _installed()
if _theirs:
    __path__.append(_theirs)  # behind this one, which has parl.remote
    importlib.machinery.SourceFileLoader(__name__, os.path.join(_theirs, "__init__.py")).exec_module(sys.modules[__name__])
else:
    __version__ = "2.2.1"  # whose remote objects these are like
    from parl.remote import connect, remote_class
