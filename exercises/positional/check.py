"""In their places.  SPDX-License-Identifier: MIT"""
from judge import *

formula = "given[i] = args[i]; if an integer stands at o->spread, all from there on are its list"
ask("import sys\ndef shape(t): return list(t.shape)\n0")
case("one number to begin with: td.arange(24.)", formula)
equal(ask("x = td.arange(24.); shape(x)"), [24])
case("sizes in a tuple: td.arange(6.).reshape((2, 3))", formula)
equal(ask("y = td.arange(6.).reshape((2, 3)); shape(y)"), [2, 3])


def shapes(what, code, expected, why=formula):
    case(f"{what}: {code}", why)
    equal(ask(f"shape({code})"), expected)


shapes("one argument", "y.relu()", [2, 3])
shapes("one argument, and no method", "td.relu(y)", [2, 3])
shapes("sizes in a tuple", "x.reshape((2, 3, 4))", [2, 3, 4])
shapes("sizes in a list", "x.reshape([2, 12])", [2, 12])
shapes("an argument by its name", "x.reshape(shape=(4, 6))", [4, 6])
shapes("all by their names", "td.reshape(input=x, shape=(4, 6))", [4, 6])
case("two arguments: (y - 1)", formula)
equal(ask("td.sub(y, 1)"), [[-1, 0, 1], [2, 3, 4]])
shapes("sizes one by one", "x.reshape(2, 3, 4)", [2, 3, 4])
shapes("sizes one by one", "td.reshape(x, 2, 3, 4)", [2, 3, 4])
shapes("sizes one by one", "y.permute(1, 0)", [3, 2])
shapes("a single size", "x.reshape(24)", [24])
shapes("no tensor in front", "td.zeros(2, 3, 4)", [2, 3, 4])
shapes("no tensor in front", "td.zeros(7)", [7])
shapes("no tensor in front", "td.zeros((2, 3))", [2, 3])
shapes("a list, and no type by position", "td.zeros(5, 2)", [5, 2])
case("a list, and no type: str(td.zeros(5, 2).dtype)", "what the list has taken belongs to no other parameter")
equal(ask("str(td.zeros(5, 2).dtype)"), "treadle.float32")
shapes("sizes, and something by its name", "td.zeros(2, 3, dtype=td.int64)", [2, 3])
case("sizes, and something by its name: str(td.zeros(2, 3, dtype=td.int64).dtype)", formula)
equal(ask("str(td.zeros(2, 3, dtype=td.int64).dtype)"), "treadle.int64")
shapes("a list in the middle is not spelled out", "y.sum(0, True)", [1, 3])
shapes("an axis in a tuple", "y.sum((0, 1), True)", [1, 1])
shapes("None in place of an axis", "y.sum(None, True)", [1, 1])
case("None, and again by its name", "None was given")
raises("TypeError", "y.sum(None, dim=0)", "argument 'dim' was given twice")
shapes("an integer that is no int of Python", "x.reshape(td.tensor(2), 12)", [2, 12])
shapes("an integer that is no int of Python, at the end", "x.reshape(2, td.tensor(12))", [2, 12])
case("True is an integer of Python and none here", "is_integer, and no bool")
raises("TypeError", "x.reshape(True, 24)", "not bool")

few = "more than o->positional is a mistake, told by complain with both numbers"
count = "takes at most {} positional arguments, {} were given"
case("one too many", few)
raises("TypeError", "y.relu(1)", "relu(): " + count.format(1, 2))
case("four too many", few)
raises("TypeError", "y.add(1, 2, 3, 4, 5)", "add(): " + count.format(2, 6))
case("too many, three hundred", few)
raises("TypeError", "y.relu(*range(300))", "relu(): " + count.format(1, 301))
case("what stands behind the star", few)
raises("TypeError", "y.sum(0, True, td.float64)", "sum(): " + count.format(3, 4))
case("a list that is given in a tuple and a type behind it", few)
raises("TypeError", "td.zeros((2, 3), td.int64)", "zeros(): " + count.format(1, 2))
case("a tuple and a number", few)
raises("TypeError", "td.zeros((2,), 3)", "zeros(): " + count.format(1, 2))
case("a half in place of the first integer", few)
raises("TypeError", "td.zeros(2.5, 3)", "zeros(): " + count.format(1, 2))
case("something else among the integers", "all from there on are its list, whatever they are")
raises("TypeError", "td.zeros(2, 2.5)", "zeros(): argument 'size' must be an integer or a sequence of integers, not float")
case("something else among the integers, a tuple", "all from there on are its list, whatever they are")
raises("TypeError", "x.reshape(2, (12,))", "'shape' must be an integer or a sequence of integers, not tuple")
case("nothing given at all", "what was not given is NULL")
raises("TypeError", "td.zeros()", "missing argument 'size'")
case("no list", "what was not given is NULL")
raises("TypeError", "x.reshape()", "missing argument 'shape'")
case("spelled out, and again by its name", "a list that is spelled out was given")
raises("TypeError", "x.reshape(2, 3, shape=(4,))", "argument 'shape' was given twice")
case("nine integers", "all from there on are its list, however many")
raises("TypeError", "x.reshape(1, 1, 1, 1, 1, 1, 1, 1, 24)", "has 9 integers")

case("references to the objects, before and after a hundred calls", "objects are borrowed")
equal(ask("big, seen = 2**40, []\n"
          "class Two:\n    def __index__(self): return 2\n"
          "two, pair = Two(), (2, 12)\n"
          "for _ in range(2):\n"
          "    seen.append([sys.getrefcount(o) - sys.getrefcount(o) + sys.getrefcount(o) for o in (x, two, pair)])\n"
          "    for _ in range(100): x.reshape(two, 12), x.reshape(pair)\n"
          "[b - a for a, b in zip(*seen)]"), [0, 0, 0])
case("a call while another is in progress", "an object that makes a call of its own when it is asked for its integer")
equal(ask("class Asks:\n    def __index__(self): td.zeros(7, 7, 7); x.reshape(3, 8); return 4\n"
          "[shape(x.reshape(Asks(), 2, 3)), shape(td.zeros(Asks(), 5, Asks()))]"), [[4, 2, 3], [4, 5, 4]])
end()
