#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the records that this worker gets, and the bytes in them."""
import os

import primus

records = size = 0
for record in primus.records():
    records += 1
    size += len(record)
print(f"worker {os.environ['PRIMUS_INDEX']} got {records} records of {size} bytes", flush=True)
