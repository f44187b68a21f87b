# numbers: any
@python3() { fold -s -w 72 figures/data/attention-gpt.log; }
python3 examples/gpt.py tinyshakespeare.txt
