# SPDX-License-Identifier: Apache-2.0
from primus.parl.client import Client, connect, disconnect, get_global_client

__all__ = ["Client", "connect", "disconnect", "get_global_client"]
