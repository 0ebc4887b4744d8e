# SPDX-License-Identifier: Apache-2.0
"""What primus.h has of checkpoints, as text that goes ahead of a program of a test's: opened(), saved(), found() and the library."""
CALLS = """
import ctypes, os, sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p
lib = ctypes.CDLL(os.environ.get("PRIMUS_LIBRARY") or "libprimus.so.1")
class Options(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("keep", c_uint32), ("keep_best", c_uint32), ("metric", c_char_p), ("rank", c_uint32), ("world", c_uint32)]
lib.primus_saved_path.restype = lib.primus_saved_metadata.restype = c_char_p
lib.primus_saved_data.restype = c_void_p
lib.primus_saved_metric.restype = c_double
lib.primus_saved_step.restype = c_uint64
lib.primus_store_error.restype = c_char_p
lib.primus_store_begin.argtypes = [c_void_p, c_uint64, c_void_p, POINTER(c_char_p)]
lib.primus_store_commit.argtypes = [c_void_p, POINTER(c_char_p), POINTER(c_double), c_size_t, c_char_p]
for name in ("primus_store_latest", "primus_store_best"):
    getattr(lib, name).argtypes = [c_void_p, c_uint32, POINTER(c_void_p)]
for name in ("path", "step", "metadata"):
    getattr(lib, "primus_saved_" + name).argtypes = [c_void_p]
lib.primus_saved_metric.argtypes = [c_void_p, c_char_p]
lib.primus_saved_data.argtypes = [c_void_p, POINTER(c_size_t)]
lib.primus_store_settle.argtypes = lib.primus_store_close.argtypes = lib.primus_store_error.argtypes = lib.primus_saved_free.argtypes = [c_void_p]
def check(r):
    if r < 0:
        sys.exit(f"{r}: {lib.primus_store_error(store)}")
    return r
def opened(top, **more):
    global store
    store = c_void_p()
    options = Options(size=ctypes.sizeof(Options), **more)
    check(lib.primus_store_open(top.encode(), byref(options), byref(store)))
def saved(step, files, metadata=None, **metrics):
    directory = c_char_p()
    check(lib.primus_store_begin(store, step, None, byref(directory)))
    for name, text in files.items():
        path = os.path.join(directory.value.decode(), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    n = len(metrics)
    check(lib.primus_store_commit(store, (c_char_p * n)(*(name.encode() for name in metrics)), (c_double * n)(*metrics.values()), n, metadata))
def found():
    c = c_void_p()
    return c if check(lib.primus_store_latest(store, 1, byref(c))) else None
"""
