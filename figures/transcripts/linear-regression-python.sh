@export PYTHONPATH="$PWD/${BUILD:-build}/python"
@cp generated/examples/linear_regression.py "${BUILD:-build}/examples/"
@cd "${BUILD:-build}/examples"
python3 linear_regression.py | tail -n 1
cmp <(./linear_regression) <(python3 linear_regression.py) && echo "not a digit differs"
