import treadle as td
import treadle.nn.functional as F
x = td.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
td.attention_weights(x, x)
F.scaled_dot_product_attention(x, x, x)
F.scaled_dot_product_attention(x, x, x, is_causal=True)
