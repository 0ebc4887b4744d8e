#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a trainer does to a GPU, by the driver's own library alone: no CUDA toolkit and no framework is needed.

    cuda.py list                    one line for each GPU that can be seen: its uuid and its memory
    cuda.py nodes                   one line for each /dev/nvidia*: whether it opens
    cuda.py spin SECONDS MEGABYTES  takes memory and keeps one multiprocessor busy; says "ready" and "done"
    cuda.py fault                   writes where there is no memory, which the driver reports as an Xid
"""
import ctypes
import errno
import glob
import os
import sys
import time
import uuid

# PTX, which the driver translates for whatever GPU there is.
PTX = b"""
.version 6.0
.target sm_52
.address_size 64
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .u64 %rd<4>;
    .reg .pred %p<1>;
    ld.param.u64 %rd0, [nanoseconds];
    mov.u64 %rd1, %globaltimer;
again:
    mov.u64 %rd2, %globaltimer;
    sub.u64 %rd3, %rd2, %rd1;
    setp.lt.u64 %p0, %rd3, %rd0;
    @%p0 bra again;
    ret;
}
.visible .entry fault(.param .u64 where)
{
    .reg .u64 %rd<1>;
    .reg .u32 %r<1>;
    ld.param.u64 %rd0, [where];
    mov.u32 %r0, 1;
    st.global.u32 [%rd0], %r0;
    ret;
}
"""
NO_DEVICE = 100
SLICE = 0.1  # seconds that one kernel lasts


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise OSError(status, f"{name}: CUDA error {status}")

    def devices(self):
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        for i in range(count.value):
            device = ctypes.c_int()
            self.call("cuDeviceGet", ctypes.byref(device), i)
            yield device

    def describe(self, device):
        raw, memory = (ctypes.c_ubyte * 16)(), ctypes.c_size_t()
        self.call("cuDeviceGetUuid_v2", raw, device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        return f"{uuid.UUID(bytes=bytes(raw))} {memory.value}"

    def begin(self):
        """The first GPU is this thread's from now on."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), next(self.devices()))
        self.call("cuCtxSetCurrent", context)
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX)

    def take(self, size):
        self.call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size))

    def launch(self, name, value):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        argument = ctypes.c_uint64(value)
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(argument), ctypes.c_void_p))
        self.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
        self.call("cuCtxSynchronize")


def show():
    try:
        driver = Driver()
    except OSError as e:
        if e.errno is None:
            raise
        print("no GPU" if e.errno == NO_DEVICE else f"no driver: {e.strerror}")
        return
    for device in driver.devices():
        print(driver.describe(device))


def nodes():
    for path in sorted(glob.glob("/dev/nvidia[0-9]*")):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
            print(f"{path} opens")
        except OSError as e:
            print(f"{path} {errno.errorcode[e.errno]}")


def spin(seconds, megabytes):
    driver = Driver()
    driver.begin()
    driver.take(megabytes << 20)
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        driver.launch("spin", int(SLICE * 1e9))
    print("done")


def fault():
    driver = Driver()
    driver.begin()
    driver.launch("fault", 0xdead0000)


def main():
    what, *arguments = sys.argv[1:]
    {"list": show, "nodes": nodes, "spin": spin, "fault": fault}[what](*map(int, arguments))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
