import treadle as td
F = td.nn.functional
x, w = td.ones(1, 1, 8), td.ones(1, 1, 3)
y = F.conv1d(x, w, stride=2)
list(y.shape), list(F.conv_transpose1d(y, w, stride=2).shape)
list(F.conv_transpose1d(y, w, stride=2, output_padding=1).shape)
