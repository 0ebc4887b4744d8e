# SPDX-License-Identifier: Apache-2.0
"""The role "driver" of driver.json: its actors run on the hosts of the same job."""
import socket

from primus import actors


class Host:
    def name(self):
        return socket.gethostname()


if __name__ == "__main__":
    with actors.Pool.of_job() as pool:
        made = [pool.create(Host) for _ in range(4)]
        for where in [one.name().result() for one in made]:
            print(f"an actor on {where}")
