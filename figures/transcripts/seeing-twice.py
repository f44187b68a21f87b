# numbers: any
import time, treadle as td
from treadle.profiler import profile, record_function
def work(depth):
    with record_function("work"):
        td.rand(300, 300) @ td.rand(300, 300)
        if depth > 1:
            work(depth - 1)


with profile() as p:
    work(4)

added = sum(e.cpu_time_total for e in p.events() if e.name == "work")
told = next(e.cpu_time_total for e in p.key_averages() if e.name == "work")
round(added), round(told)
