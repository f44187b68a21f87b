/* SPDX-License-Identifier: MIT */
/* Tangled from the chapter "containers": edit that, not this file. */
/* LAYER(class, constructor, operator, parts, run, dimensions, takes):
   td_CONSTRUCTOR_module takes the operator's arguments and these, some
   of which it must have!  BY_NAME(operator): a typed function. */
#ifndef LAYER
#define LAYER(...)
#endif
#ifndef BY_NAME
#define BY_NAME(op)
#endif
#define TD_IS(op) &td_ops[TD_OP_##op]
#define TD_PLAIN(name, op) TD_WITH(name, op, 0, NULL, "")
#define TD_CALLED_LAYER(name, op) BY_NAME(op) TD_PLAIN(name, op)
#define TD_GIVEN_LAYER(name, op, ...) \
    BY_NAME(op) TD_WITH(name, op, __VA_ARGS__)
#define TD_WITH(name, op, dims, make, takes) \
    LAYER(name, op, TD_IS(op), make, NULL, dims, " " takes)
#define TD_THREE(row, name, op, ...) \
    row(name##1d, op##1d, 1, __VA_ARGS__) \
    row(name##2d, op##2d, 2, __VA_ARGS__) \
    row(name##3d, op##3d, 3, __VA_ARGS__)
/* containers: functions by name */
BY_NAME(interpolate)
BY_NAME(one_hot)
/* normalisation: functions by name */
BY_NAME(batch_norm)
BY_NAME(instance_norm)
/* pooling: functions by name */
BY_NAME(feature_dropout)
/* recurrence: functions by name */
BY_NAME(rnn_tanh)
BY_NAME(rnn_relu)
BY_NAME(lstm)
BY_NAME(gru)
BY_NAME(rnn_tanh_cell)
BY_NAME(rnn_relu_cell)
BY_NAME(lstm_cell)
BY_NAME(gru_cell)
/* attention: functions by name */
BY_NAME(scaled_dot_product_attention)
BY_NAME(rotary_embedding)
/* containers: rows of layers */
TD_PLAIN(ReLU6, relu6)
TD_PLAIN(SELU, selu)
TD_PLAIN(SiLU, silu)
TD_PLAIN(Mish, mish)
TD_PLAIN(Hardswish, hardswish)
TD_PLAIN(Hardsigmoid, hardsigmoid)
TD_PLAIN(ELU, elu)
TD_CALLED_LAYER(CELU, celu)
TD_PLAIN(LeakyReLU, leaky_relu)
TD_CALLED_LAYER(GELU, gelu)
TD_CALLED_LAYER(Softplus, softplus)
TD_CALLED_LAYER(Hardshrink, hardshrink)
TD_CALLED_LAYER(Softshrink, softshrink)
TD_PLAIN(Sigmoid, sigmoid)
TD_PLAIN(Tanh, tanh)
TD_PLAIN(LogSigmoid, logsigmoid)
TD_PLAIN(Softsign, softsign)
TD_CALLED_LAYER(Tanhshrink, tanhshrink)
TD_CALLED_LAYER(Hardtanh, hardtanh)
TD_CALLED_LAYER(Threshold, threshold)
TD_PLAIN(Softmax, softmax)
TD_PLAIN(LogSoftmax, log_softmax)
TD_PLAIN(Flatten, flatten)
TD_GIVEN_LAYER(PixelShuffle, pixel_shuffle, 0, NULL, "upscale_factor!")
TD_GIVEN_LAYER(PixelUnshuffle, pixel_unshuffle, 0, NULL,
     "downscale_factor!")
TD_GIVEN_LAYER(Unflatten, unflatten, 0, NULL, "dim! sizes!")
TD_GIVEN_LAYER(PReLU, prelu, 0, make_prelu, "num_parameters init")
TD_WITH(Embedding, embedding, 0, make_embedding,
     "num_embeddings! embedding_dim!")
LAYER(Identity, identity, NULL, NULL, run_identity, 0, " ")
LAYER(Upsample, upsample, NULL, NULL, run_upsample, 0,
      " size scale_factor mode align_corners")
#define TD_BORDER(name, c_name, n, mode, takes) \
    LAYER(name, c_name, NULL, NULL, run_border, 4 * mode + n, \
          " padding! " takes)
TD_THREE(TD_BORDER, ConstantPad, constant_pad, 0, "value")
TD_THREE(TD_BORDER, ZeroPad, zero_pad, 0, "")
TD_THREE(TD_BORDER, ReflectionPad, reflection_pad, 1, "")
TD_THREE(TD_BORDER, ReplicationPad, replication_pad, 2, "")
TD_THREE(TD_BORDER, CircularPad, circular_pad, 3, "")
/* convolution: rows of layers */
#define TD_CONV " in_channels! out_channels! kernel_size! stride" \
                " padding dilation groups=1 no_bias"
#define TD_CONV_T TD_CONV " output_padding"
LAYER(Conv1d, conv1d, NULL, make_conv, run_conv, 1, TD_CONV)
LAYER(Conv2d, conv2d, NULL, make_conv, run_conv, 2, TD_CONV)
LAYER(ConvTranspose1d, conv_transpose1d, NULL, make_conv, run_conv, -1,
      TD_CONV_T)
LAYER(ConvTranspose2d, conv_transpose2d, NULL, make_conv, run_conv, -2,
      TD_CONV_T)
/* normalisation: rows of layers */
TD_GIVEN_LAYER(LayerNorm, layer_norm, 0, make_norm,
     "normalized_shape! no_affine no_bias")
TD_GIVEN_LAYER(RMSNorm, rms_norm, -1, make_norm,
     "normalized_shape! no_affine")
TD_GIVEN_LAYER(GroupNorm, group_norm, 0, make_norm,
     "num_groups! num_channels! no_affine")
#define TD_NORM(name, c_name, n, op, takes) \
    LAYER(name, c_name, TD_IS(op), make_norm, run_norm, n, \
          " num_features! " takes)
TD_THREE(TD_NORM, BatchNorm, batch_norm, batch_norm,
         "no_affine no_running_stats")
TD_THREE(TD_NORM, InstanceNorm, instance_norm, instance_norm,
         "affine track_running_stats")
/* pooling: rows of layers */
TD_THREE(TD_GIVEN_LAYER, MaxPool, max_pool, NULL, "kernel_size!")
TD_THREE(TD_GIVEN_LAYER, AvgPool, avg_pool, NULL, "kernel_size!")
TD_THREE(TD_GIVEN_LAYER, AdaptiveAvgPool, adaptive_avg_pool, NULL,
         "output_size!")
TD_THREE(TD_GIVEN_LAYER, AdaptiveMaxPool, adaptive_max_pool, NULL,
         "output_size!")
#define TD_DROP(name, c_name, n, op) \
    LAYER(name, c_name, TD_IS(op), NULL, NULL, 0, " ")
TD_THREE(TD_DROP, Dropout, dropout, feature_dropout)
TD_CALLED_LAYER(Dropout, dropout)
TD_CALLED_LAYER(AlphaDropout, alpha_dropout)
TD_CALLED_LAYER(FeatureAlphaDropout, feature_alpha_dropout)
/* recurrence: rows of layers */
#define TD_RNN(name, c_name, op, gates, takes) \
    LAYER(name, c_name, TD_IS(op), make_rnn, run_rnn, gates, \
          " input_size! hidden_size! no_bias" takes)
TD_RNN(RNN, rnn, rnn_tanh, 1, " nonlinearity")
TD_RNN(LSTM, lstm, lstm, 4, "")
TD_RNN(GRU, gru, gru, 3, "")
TD_RNN(RNNCell, rnn_cell, rnn_tanh_cell, -1, " nonlinearity")
TD_RNN(LSTMCell, lstm_cell, lstm_cell, -4, "")
TD_RNN(GRUCell, gru_cell, gru_cell, -3, "")
/* attention: rows of layers */
LAYER(MultiheadAttention, multihead_attention, NULL, make_attention,
      run_attention, 0,
      " embed_dim! num_heads! dropout no_bias batch_first")
#define TD_TEXTS " d_model! nhead! dim_feedforward=2048 dropout" \
    " activation layer_norm_eps batch_first norm_first no_bias"
LAYER(TransformerEncoderLayer, transformer_encoder_layer, NULL,
      make_text_layer, run_text_layer, 2, TD_TEXTS)
LAYER(TransformerDecoderLayer, transformer_decoder_layer, NULL,
      make_text_layer, run_text_layer, 3, TD_TEXTS)
LAYER(PositionalEncoding, positional_encoding, NULL, make_positions,
      run_positions, 0, " d_model! max_len=5000 dropout batch_first")
LAYER(LearnedPositionalEncoding, learned_positional_encoding, NULL,
      make_positions, run_positions, 1,
      " d_model! max_len=5000 dropout batch_first")
LAYER(SwiGLU, swiglu, NULL, make_swiglu, run_swiglu, 0,
      " in_features! hidden_features! with_bias")
/* models: rows of layers */
LAYER(MLP, mlp, NULL, make_mlp, run_in_turn, 0, " sizes! activation")
LAYER(CNN, cnn, NULL, make_cnn, run_cnn, 0,
      " classes=10 channels hidden=128")
LAYER(ResNet, resnet, NULL, make_resnet, run_resnet, 0,
      " blocks=3 classes=10 width=16 projection")
LAYER(Forecaster, forecaster, NULL, make_forecaster, run_forecaster, 0,
      " input_size=1 hidden_size=64 num_layers horizon=1 dropout")
LAYER(GPT, gpt, NULL, make_gpt, run_gpt, 0, " vocab_size! n_positions!"
      " n_embd! n_layer! n_head! n_inner rotary rms activation no_bias"
      " untied dropout eps base")
#undef LAYER
#undef BY_NAME
