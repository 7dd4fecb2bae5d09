//! What the matrices of the collection are like, measured from its files.

/// A layer of a network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    /// Its name in the collection.
    pub(super) name: &'static str,
    /// Rows of its weights: outputs.
    pub(super) m: usize,
    /// Columns: inputs.
    pub(super) k: usize,
    /// Coefficients of variation of the row lengths at each of [`SPARSITIES`].
    pub(super) cov: [f64; SPARSITIES.len()],
}

/// A layer of ResNet-50, and N for one image: the pixels of its output.
pub(super) type Convolution = (Layer, usize);

/// The parts of zeros. A matrix has as many nonzeros as that, to within two.
pub(super) const SPARSITIES: [f64; 4] = [0.7, 0.8, 0.9, 0.95];

const fn layer(name: &'static str, m: usize, k: usize, cov: [f64; SPARSITIES.len()]) -> Layer {
    Layer { name, m, k, cov }
}

/// ResNet-50, magnitude pruning.
#[rustfmt::skip]
pub(super) const RESNET: [Convolution; 21] = [
    (layer("bottleneck_1_block_group1_1_1", 64, 256, [0.183, 0.256, 0.327, 0.402]), 3136),
    (layer("bottleneck_1_block_group2_1_1", 128, 512, [0.174, 0.208, 0.346, 0.429]), 784),
    (layer("bottleneck_1_block_group3_1_1", 256, 1024, [0.160, 0.207, 0.293, 0.353]), 196),
    (layer("bottleneck_1_block_group4_1_1", 512, 2048, [0.093, 0.120, 0.154, 0.189]), 49),
    (layer("bottleneck_1_block_group_projection_block_group1", 64, 64, [0.353, 0.465, 0.696, 0.661]), 3136),
    (layer("bottleneck_1_block_group_projection_block_group2", 128, 256, [0.206, 0.245, 0.314, 0.429]), 3136),
    (layer("bottleneck_1_block_group_projection_block_group3", 256, 512, [0.147, 0.178, 0.242, 0.305]), 784),
    (layer("bottleneck_1_block_group_projection_block_group4", 512, 1024, [0.080, 0.098, 0.135, 0.174]), 196),
    (layer("bottleneck_2_block_group1_1_1", 64, 576, [0.235, 0.314, 0.448, 0.478]), 3136),
    (layer("bottleneck_2_block_group2_1_1", 128, 1152, [0.223, 0.231, 0.345, 0.450]), 784),
    (layer("bottleneck_2_block_group3_1_1", 256, 2304, [0.133, 0.173, 0.292, 0.441]), 196),
    (layer("bottleneck_2_block_group4_1_1", 512, 4608, [0.063, 0.079, 0.122, 0.197]), 49),
    (layer("bottleneck_3_block_group1_1_1", 256, 64, [0.702, 0.755, 0.863, 1.236]), 3136),
    (layer("bottleneck_3_block_group2_1_1", 512, 128, [0.393, 0.820, 1.166, 0.935]), 784),
    (layer("bottleneck_3_block_group3_1_1", 1024, 256, [0.232, 0.306, 0.473, 0.732]), 196),
    (layer("bottleneck_3_block_group4_1_1", 2048, 512, [0.185, 0.251, 0.431, 0.644]), 49),
    (layer("bottleneck_projection_block_group_projection_block_group2", 512, 256, [0.340, 0.434, 0.553, 0.770]), 784),
    (layer("bottleneck_projection_block_group_projection_block_group3", 1024, 512, [0.207, 0.289, 0.459, 0.551]), 196),
    (layer("bottleneck_projection_block_group_projection_block_group4", 2048, 1024, [0.099, 0.129, 0.197, 0.266]), 49),
    (layer("final_dense", 1000, 2048, [0.182, 0.235, 0.250, 0.206]), 1),
    (layer("initial_conv", 64, 147, [0.475, 0.646, 0.830, 0.929]), 12544),
];

/// The Transformer, magnitude pruning.
#[rustfmt::skip]
pub(super) const TRANSFORMER: [Layer; 6] = [
    layer("body_decoder_layer_0_encdec_attention_multihead_attention_k_fully_connected", 512, 512, [0.230, 0.216, 0.335, 0.390]),
    layer("body_decoder_layer_0_encdec_attention_multihead_attention_output_transform_fully_connected", 512, 512, [0.192, 0.202, 0.363, 0.620]),
    layer("body_decoder_layer_0_ffn_conv1_fully_connected", 2048, 512, [0.144, 0.154, 0.251, 0.394]),
    layer("body_decoder_layer_0_ffn_conv2_fully_connected", 512, 2048, [0.195, 0.136, 0.205, 0.293]),
    layer("body_encoder_layer_3_self_attention_multihead_attention_q_fully_connected", 512, 512, [0.219, 0.197, 0.275, 0.484]),
    layer("body_encoder_layer_5_ffn_conv1_fully_connected", 2048, 512, [0.266, 0.277, 0.398, 0.555]),
];
