# SPDX-License-Identifier: MIT
# Tangled from the chapter "package": edit that, not this file.
"""The types of results whose parts have names."""
