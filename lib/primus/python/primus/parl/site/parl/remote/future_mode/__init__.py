# SPDX-License-Identifier: Apache-2.0
from parl.remote.future_mode.future_object import FutureObject

__all__ = ["FutureObject"]
