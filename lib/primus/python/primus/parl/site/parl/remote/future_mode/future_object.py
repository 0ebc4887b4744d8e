# SPDX-License-Identifier: Apache-2.0
from primus.parl.remote_class import FutureObject

__all__ = ["FutureObject"]
