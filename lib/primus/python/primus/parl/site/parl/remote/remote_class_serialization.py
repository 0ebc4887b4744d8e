# SPDX-License-Identifier: Apache-2.0
from primus.parl.remote_class import is_implemented_in_notebook

__all__ = ["is_implemented_in_notebook"]
