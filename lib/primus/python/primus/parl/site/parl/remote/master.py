# SPDX-License-Identifier: Apache-2.0
from primus.parl.master import Master

__all__ = ["Master"]
