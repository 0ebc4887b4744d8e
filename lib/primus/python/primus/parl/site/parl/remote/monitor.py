# SPDX-License-Identifier: Apache-2.0
from primus.parl.monitor import ClusterMonitor, main

__all__ = ["ClusterMonitor"]

if __name__ == "__main__":
    main()
