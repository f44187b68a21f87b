# numbers: within 0.05
build/examples/classifier_short
PYTHONPATH=build/python python3 generated/examples/classifier_short.py
