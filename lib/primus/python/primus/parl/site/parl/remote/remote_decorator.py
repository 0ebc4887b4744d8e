# SPDX-License-Identifier: Apache-2.0
from primus.parl.remote_class import remote_class

__all__ = ["remote_class"]
