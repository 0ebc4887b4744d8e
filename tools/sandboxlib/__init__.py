# SPDX-License-Identifier: Apache-2.0
"""Clusters of container hosts on one machine: real systemd, own addresses, own disks, no privileges lost.

Modules, each importing only those before it:
  state    where things are, what they are called, who holds the lock
  enter    running a command inside a host
  rootfs   the root tree shared by all hosts, cached
  network  a namespace with a bridge per cluster, a namespace per host
  cgroup   the cgroup that a host lives in, with and without systemd on the machine
  host     boot, crash, cut and heal one host
  stage    what a meson build installs, laid over the root tree
  primus   bringing masterd and the agents up
  cluster  up, down and status of the whole
"""
