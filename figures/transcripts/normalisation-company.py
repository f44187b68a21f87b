# numbers: within 1e-3
import treadle as td
net = td.nn.BatchNorm1d(1)
me, small, large = 3., [1., 2.], [40., 50.]
for company in small, large:
    print(net(td.tensor([[me], *([x] for x in company)]))[0].item())

_ = net.eval()
for company in small, large:
    print(net(td.tensor([[me], *([x] for x in company)]))[0].item())

