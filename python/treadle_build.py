# SPDX-License-Identifier: MIT
"""The build backend of `pip install ./python`.

Nothing is compiled here: `make python` has staged the package, with its
extension and libtreadle.so, and a wheel is a zip file of that folder with
three files of metadata.  TREADLE_STAGE names another folder than
build/python.
"""
import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

NAME, VERSION = "treadle", "0.1.0"
SUMMARY = "A deep-learning framework woven in C"


def stage():
    """The folder that holds the staged package, checked."""
    here = Path(__file__).resolve().parent
    folder = Path(os.environ.get("TREADLE_STAGE",
                                 here.parent / "build" / "python"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    package = folder / NAME
    if not (package / "__init__.py").is_file():
        sys.exit(f"treadle: nothing is staged in {folder}; "
                 "run `make python` first")
    if not (package / f"_C{suffix}").is_file():
        sys.exit(f"treadle: the extension staged in {package} is not for "
                 f"{sys.executable}, which needs _C{suffix}; "
                 f"run `make python PYTHON={sys.executable}`")
    return folder


def tag():
    """The wheel's tag: this interpreter, this platform."""
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{version}-{version}-{platform}"


def metadata():
    """{name in the dist-info folder: text}"""
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\n"
                    f"Version: {VERSION}\nSummary: {SUMMARY}\n"
                    "License: MIT\nRequires-Python: >=3.9\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: treadle_build\n"
                 f"Root-Is-Purelib: false\nTag: {tag()}\n",
        "entry_points.txt": "[console_scripts]\n"
                            "treadle = treadle.__main__:main\n",
    }


def stub(folder):
    """The declarations of _C, as the staged package writes them."""
    return subprocess.run(
        [sys.executable, "-m", f"{NAME}._stubs"], check=True,
        stdout=subprocess.PIPE, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)}).stdout


def record_line(name, data):
    """name,sha256=...,size as RECORD wants it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"{name},sha256={digest.decode().rstrip('=')},{len(data)}\n"


def build_wheel(wheel_directory, config_settings=None,
                metadata_directory=None):
    """Zip the staged package; returns the wheel's file name."""
    folder, info = stage(), f"{NAME}-{VERSION}.dist-info"
    wheel, record = f"{NAME}-{VERSION}-{tag()}.whl", ""
    files = {path.relative_to(folder).as_posix(): path.read_bytes()
             for path in sorted((folder / NAME).rglob("*"))
             if path.is_file() and "__pycache__" not in path.parts}
    files[f"{NAME}/_C.pyi"] = stub(folder)
    for name, text in metadata().items():
        files[f"{info}/{name}"] = text.encode()
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w",
                         zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
            record += record_line(name, data)
        out.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the sources are the whole repository."""
    sys.exit("treadle: use `make dist` for the sources")
