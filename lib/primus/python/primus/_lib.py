# SPDX-License-Identifier: Apache-2.0
"""libprimus.so.1 through ctypes: the structs and functions of primus.h, nothing else."""
import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

INTERRUPTIBLE = 1


class Options(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("checkpoint", c_char_p), ("checkpoint_size", c_size_t)]


class Record(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("task", c_uint64), ("source", c_uint32),
                ("position", c_uint64), ("key", c_void_p), ("key_size", c_size_t), ("timestamp_msec", c_int64)]


class Block(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t), ("task", c_uint64), ("source", c_uint32),
                ("position", c_uint64)]


class Range(ctypes.Structure):
    _fields_ = [("fd", c_int), ("path", c_char_p), ("offset", c_uint64), ("length", c_uint64), ("task", c_uint64),
                ("source", c_uint32)]


# Handles travel as numbers: c_void_p as an argument, so that 64 bits arrive.
FUNCTIONS = {
    "primus_open": (c_int, [POINTER(Options), POINTER(c_void_p)]),
    "primus_close": (None, [c_void_p]),
    "primus_next": (c_int, [c_void_p, POINTER(Record)]),
    "primus_next_block": (c_int, [c_void_p, c_size_t, POINTER(Block)]),
    "primus_block_next": (c_int, [c_void_p, POINTER(Block), POINTER(c_size_t), POINTER(Record)]),
    "primus_block_members": (c_int, [c_void_p, POINTER(Block), POINTER(c_size_t), c_void_p, c_size_t, c_void_p, c_size_t]),
    "primus_next_range": (c_int, [c_void_p, POINTER(Range)]),
    "primus_ack": (c_int, [c_void_p]),
    "primus_ack_records": (c_int, [c_void_p, c_uint64]),
    "primus_ack_position": (c_int, [c_void_p, c_uint64, c_uint64]),
    "primus_fail": (c_int, [c_void_p, c_char_p]),
    "primus_task_path": (c_int, [c_void_p, POINTER(c_char_p)]),
    "primus_checkpoint": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "primus_checkpoint_commit": (c_int, [c_void_p, c_char_p, c_size_t]),
    "primus_tfrecord_checksum": (c_uint32, [c_char_p, c_size_t]),
    "primus_tar_next": (c_int, [POINTER(Record), POINTER(c_size_t), POINTER(c_void_p), POINTER(c_size_t),
                                POINTER(c_void_p), POINTER(c_size_t)]),
    "primus_header": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "primus_source_format": (c_int, [c_void_p, c_uint32]),
    "primus_get_ack_mode": (c_int, [c_void_p]),
    "primus_get_mode": (c_int, [c_void_p]),
    "primus_get_fd": (c_int, [c_void_p]),
    "primus_waited_usec": (c_uint64, [c_void_p]),
    "primus_error": (c_char_p, [c_void_p]),
    "primus_progress": (None, [c_uint64]),
    "primus_report": (c_int, [c_uint64, c_void_p, c_void_p, c_size_t]),
    "primus_report_flush": (c_int, [c_uint64]),
    "primus_trial_open": (c_int, [POINTER(c_void_p)]),
    "primus_trial_report": (c_int, [c_void_p, c_uint64, c_double]),
    "primus_trial_invalid": (c_int, [c_void_p]),
    "primus_trial_flush": (c_int, [c_void_p, c_uint64]),
    "primus_trial_error": (c_char_p, [c_void_p]),
    "primus_trial_close": (None, [c_void_p]),
    "primus_searcher_open": (c_int, [POINTER(c_void_p)]),
    "primus_questions_open": (c_int, [POINTER(c_void_p)]),
    "primus_searcher_ask": (c_int, [c_void_p, c_char_p, POINTER(c_char_p)]),
    "primus_searcher_error": (c_char_p, [c_void_p]),
    "primus_searcher_close": (None, [c_void_p]),
    "primus_rendezvous_read": (c_int, [POINTER(c_void_p)]),
    "primus_rendezvous_wait": (c_int, [c_uint64, c_uint64, POINTER(c_void_p)]),
    "primus_rendezvous_free": (None, [c_void_p]),
    "primus_rendezvous_epoch": (c_uint64, [c_void_p]),
    "primus_rendezvous_get": (c_char_p, [c_void_p, c_char_p]),
    "primus_rendezvous_next": (c_void_p, [c_void_p, c_void_p]),
}


def load():
    """The library: $PRIMUS_LIBRARY names another than the installed one. OSError where there is none."""
    lib = ctypes.CDLL(os.environ.get("PRIMUS_LIBRARY") or "libprimus.so.1")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


def free(pointer):
    """For memory that the library has allocated for its caller."""
    c_free = ctypes.CDLL(None).free
    c_free.restype = None
    c_free.argtypes = [c_void_p]
    c_free(pointer)
