# SPDX-License-Identifier: Apache-2.0
"""The names of the two groups of metrics that have calls of their own."""
_LEGACY_TRAINING = "training"
_LEGACY_VALIDATION = "validation"
