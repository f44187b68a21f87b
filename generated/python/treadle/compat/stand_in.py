# SPDX-License-Identifier: MIT
# Tangled from the chapter "strangers": edit that, not this file.
"""treadle under another name, for programs that import that."""
import importlib
import importlib.machinery
import sys


class _Stand:
    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        first, dot, rest = name.partition(".")
        if first == self.name:
            module = importlib.import_module("treadle" + dot + rest)
            return importlib.machinery.ModuleSpec(
                name, self, loader_state=(module, module.__spec__))

    def create_module(self, spec):
        return spec.loader_state[0]

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state[1]


def stand_for(name="torch"):
    """Let `import NAME` and all below it find this package."""
    if name in sys.modules:
        raise ImportError(f"stand_for: {name} is imported already")
    sys.meta_path.insert(0, _Stand(name))
