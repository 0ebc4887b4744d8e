# SPDX-License-Identifier: Apache-2.0
"""Programs that were written for Determined's Core API, as jobs of Primus: python3 -m primus.determined. See
docs/migrating-from-determined.md."""
