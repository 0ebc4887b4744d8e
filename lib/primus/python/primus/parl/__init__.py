# SPDX-License-Identifier: Apache-2.0
"""What was written for PARL's xparl runs on Primus, as it is: the class decorator, connect(), futures, errors and the command xparl, over
primus.actors. See docs/migrating-from-parl.md.

    python3 -m primus.parl [OPTIONS] SCRIPT [ARGUMENT...]

    exceptions     what can go wrong
    remote_class   the decorator, and what it makes of a class
    client         connect(), and where its objects are: on a cluster of xparl, or in a pool of primus.actors
    master, worker, monitor, logs   a cluster of xparl; xparl is its command
    site/          the modules by PARL's names, which find these"""
