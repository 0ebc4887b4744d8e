# SPDX-License-Identifier: Apache-2.0
from primus.parl.worker import Worker

__all__ = ["Worker"]
