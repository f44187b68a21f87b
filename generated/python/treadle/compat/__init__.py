# SPDX-License-Identifier: MIT
# Tangled from the chapter "dialect": edit that, not this file.
"""Names that PyTorch's users need, found when first asked for."""
import sys
from fnmatch import fnmatchcase
from importlib import import_module
from .. import _errors, cuda

NAMES = {name: home or name for home, names in (
    # checkpoints: names found on demand
    ("serialization", "load save"),
    ("", "serialization"),
    # dialect: names found on demand
    ("compat.types", """can_cast finfo get_default_dtype iinfo promote_types
        result_type set_default_dtype set_default_tensor_type
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor
        FloatTensor HalfTensor IntTensor LongTensor ShortTensor
        cuda.BFloat16Tensor cuda.BoolTensor cuda.ByteTensor cuda.CharTensor
        cuda.DoubleTensor cuda.FloatTensor cuda.HalfTensor cuda.IntTensor
        cuda.LongTensor cuda.ShortTensor"""),
    ("compat.creation", """asarray frombuffer logspace normal randint_like
        scalar_tensor"""),
    ("compat.settings", """set_float32_matmul_precision set_printoptions
        use_deterministic_algorithms"""),
    ("random", "get_rng_state initial_seed seed set_rng_state"),
    ("", "backends random"),
    # strangers: names found on demand
    ("compat.stand_in", "stand_for"),
    # porting: names found on demand
    ("compat.settings", "compile set_default_device"),
    ("func", "vmap"),
    ("", "special testing version"),
    # distributions: names found on demand
    ("", "distributions"),
    # models: names found on demand
    ("", "models"),
    # precision: names found on demand
    ("amp", "GradScaler autocast is_autocast_enabled"),
    ("", "amp cuda.amp"),
    # seeing: names found on demand
    ("", "graph profiler svg"),
) for name in names.split()}
REASONS = {}        # why a name is absent, where we know
# dialect: function find_on_demand


def find_on_demand(module, otherwise=None):
    """Let the module find those of NAMES that are its own."""
    own, inside = vars(module), module.__name__.partition(".")[2]
    names = {name.rpartition(".")[2]: name for name in NAMES
             if name.rpartition(".")[0] == inside}

    def find(name):
        if name == "__all__":
            return [name for name in dir(module) if name[0] != "_"]
        if name not in names:
            reason = next((why for known, why in REASONS.items()
                           if fnmatchcase(name, known)), otherwise)
            raise AttributeError(
                f"module {module.__name__!r} has no attribute {name!r}"
                + (f": {reason}" if reason else ""))
        home = NAMES[names[name]]
        found = import_module(f"treadle.{home}")
        _errors.name_errors(found)
        if home != names[name]:
            own.setdefault(name, getattr(found, names[name]))
        return own[name]
    own.update(__getattr__=find, __dir__=lambda: sorted({*own, *names}))
    return find


find_on_demand(cuda)
__getattr__ = find_on_demand(sys.modules["treadle"])
