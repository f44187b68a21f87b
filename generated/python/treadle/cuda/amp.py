# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
from ..amp import GradScaler, autocast
