# numbers: within 1e-3
# surprise at the last 100,000 letters of the text by counts of letters, and of pairs, in the others
"${PYTHON:-/usr/bin/python3}" - "${TREADLE_DATA:-../shared/data}/text/tinyshakespeare.txt" <<'END_OF_SCRIPT'
import math
import sys
from collections import Counter
text = open(sys.argv[1], encoding="utf-8").read()
learn, ask = text[:-100000], text[-100000:]
signs = len(set(text))
one, two = Counter(learn), Counter(zip(learn, learn[1:]))
n = len(ask) - 1
print("count,surprise")
print(f"none,{math.log(signs):.2f}")
print(f"letters,{sum(-math.log((one[b] + 1) / (len(learn) + signs)) for b in ask[1:]) / n:.2f}")
print(f"pairs,{sum(-math.log((two[a, b] + 1) / (one[a] + signs)) for a, b in zip(ask, ask[1:])) / n:.2f}")
END_OF_SCRIPT
