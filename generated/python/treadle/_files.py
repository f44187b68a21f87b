# SPDX-License-Identifier: MIT
# Tangled from the chapter "programs": edit that, not this file.
"""save and load: any object in a file, by pickle."""
import pickle


def save(obj, f, pickle_module=pickle, pickle_protocol=4, **named):
    """Write obj to a path or an open file."""
    if hasattr(f, "write"):
        pickle_module.dump(obj, f, pickle_protocol)
    else:
        with open(f, "wb") as file:
            pickle_module.dump(obj, file, pickle_protocol)


def load(f, map_location=None, pickle_module=pickle, **named):
    """Read what save wrote; never a file that you do not trust."""
    if hasattr(f, "read"):
        return pickle_module.load(f)
    with open(f, "rb") as file:
        return pickle_module.load(file)
