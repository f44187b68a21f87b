# numbers: any
import json, os, treadle as td
x = td.rand(100, 100, requires_grad=True)
with td.profiler.profile() as p:
    y = x.softmax(1).square().sum()

path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "trace.json")
p.export_chrome_trace(path)
for e in json.load(open(path))["traceEvents"]:
    print(e["ph"], e["name"], round(e["ts"] - p.events()[0].start, 1), round(e["dur"], 1), e["cat"])

os.remove(path)
