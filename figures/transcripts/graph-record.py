import treadle as td
x = td.ones(4, requires_grad=True)
y = x
for i in range(1000): y = y * x

td.live_node_count(), td.memory_stats()["bytes"] // 16
y.sum().backward()
td.live_node_count(), td.memory_stats()["bytes"] // 16
del y
td.live_node_count(), td.memory_stats()["bytes"] // 16
