@transposes() { TREADLE_CUDA_REPORT=1 "${PYTHON:-/usr/bin/python3}" -c "import ctypes; ctypes.CDLL('${BUILD:-build}/libplanted.so').transposed()" 2>&1; }
transposes
