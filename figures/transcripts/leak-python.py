import gc
class Value: pass

def double(x):
    y = Value()
    y.data, y.grad = 2 * x, 0
    def backward(): return 2 * y.grad
    y.backward = backward
    return y.data

def values(): return sum(isinstance(o, Value) for o in gc.get_objects())

gc.disable()
sum(double(x) for x in range(20)), values()
gc.collect() > 0, values()
