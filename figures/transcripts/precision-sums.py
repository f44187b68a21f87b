import treadle as td
ones = td.ones(10000, dtype=td.bfloat16)
count = td.zeros((), dtype=td.bfloat16)
for one in ones: count += one

count.item(), ones.sum().item(), ones.sum(dtype=td.float32).item()
(ones + 2.5).dtype, (ones + ones.float()).dtype, (ones + ones.half()).dtype
ones @ ones.float()
ones.to(td.int8) + 1
