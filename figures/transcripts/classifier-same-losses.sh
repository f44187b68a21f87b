build/examples/classifier --epochs 1 --losses build/c.txt > /dev/null 2>&1
@export PYTHONPATH=build/python
python3 generated/examples/classifier.py --epochs 1 --losses build/py.txt > /dev/null 2>&1
wc -l < build/c.txt
cmp build/c.txt build/py.txt && echo equal
