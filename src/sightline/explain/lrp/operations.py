"""The operations that have rules, by their names and by the kind of rule."""

# (rsqrt: what RMSNorm scales by is a constant, as a layer norm's deviation is.)
GATES = {"sigmoid", "softmax", "log_softmax", "additive_energy", "unit_gate", "rsqrt"}
ATTENTION = {"scaled_dot_product_attention", "additive_energy"}
SUMS = {"add", "__radd__", "sub", "__rsub__", "rsub"}
REDUCTIONS = {"sum", "mean", "avg_pool2d", "adaptive_avg_pool2d"}
MATRIX_PRODUCTS = {"matmul", "bmm", "mm", "einsum"}
PRODUCTS = {"mul", "__rmul__", *MATRIX_PRODUCTS}
# Number by number, and nothing of nothing: f(0) = 0.
SQUASHES = {
    *("tanh", "relu6", "hardtanh", "gelu", "silu", "mish", "hardswish", "softsign"),
    *("leaky_relu", "elu", "celu", "selu"),
    # A number over what all have in common, which is a constant, as a layer norm's deviation is.
    *("normalize", "rms_norm"),
}
JOINS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack"}
LINEAR = {"linear", "conv1d", "conv2d", "conv3d"}  # maps with a weight and a bias
# What is linear in its first input, or picks from it: the gradient is the rule.
PLAIN = {
    *("split", "chunk", "unbind", "squeeze", "unsqueeze", "expand", "contiguous"),
    *("flatten", "unflatten", "reshape", "view", "transpose", "permute", "clone", "neg"),
    *("__getitem__", "gather", "detach", "relu", "max_pool2d", "dropout", "dropout1d"),
    *("dropout2d", "unfold", "fold"),
    *("view_as", "reshape_as", "expand_as", "movedim", "swapaxes", "narrow", "select", "repeat"),
    *("index_select", "repeat_interleave", "flip", "roll", "to", "float", "double", "type_as"),
    "type",
    "__get__",  # .T, .mT
}
