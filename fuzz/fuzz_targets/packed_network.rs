//! Any bytes as a packed network's file: an error, or a network that survives being written and read, and in whose kernels the
//! simulator finds nothing.
//!
//! The first byte chooses what the rest is: the file itself, or changes of one that is well formed. Those get the right checksums, as
//! none would come by them by chance.
#![no_main]

use lacuna::matrix::{Csr, generate};
use lacuna::spdnn::{Activation, Algorithm, Bias, Features, Layer, Options, PackedNetwork};
use lacuna::{Device, SparseNetwork};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};

/// Magic, version and length come before the head's body.
const START: usize = 24;
const SUM: usize = 32;
const ROWS: usize = 3;
/// Wider networks are not run.
const MOST_WIDTH: usize = 1 << 12;

const ALGORITHMS: [Algorithm; 8] = [
    Algorithm::InputGroups { outputs: 16, tiles: 4 },
    Algorithm::InputGroups { outputs: 4, tiles: 1 },
    Algorithm::InputGroups { outputs: 1, tiles: 4 },
    Algorithm::GroupTiles { outputs: 16, tiles: 2 },
    Algorithm::GroupMma,
    Algorithm::FusedLayers,
    Algorithm::Baseline,
    Algorithm::StagedEll,
];

fuzz_target!(|input: &[u8]| {
    let Some((&first, rest)) = input.split_first() else { return };
    let device = Device::simulator();
    let bytes = match ALGORITHMS.get(usize::from(first)) {
        Some(&algorithm) => changed(file(&device, algorithm), rest),
        None => rest.to_vec(),
    };
    let Ok(packed) = PackedNetwork::read(&device, &bytes[..]) else { return };
    let mut written = Vec::new();
    packed.write(&mut written).expect("writing to memory");
    assert!(written == bytes, "a network is written as it was read");
    let network = SparseNetwork::from_packed(&device, &packed).expect("the device that it was read for");
    if network.inputs().max(network.outputs()) <= MOST_WIDTH {
        let samples = vec![1.0; ROWS * network.inputs()];
        let samples = Features::dense(ROWS, network.inputs(), samples).expect("as many as there are inputs");
        network.infer(&device.stream().expect("a stream"), &samples).expect("no findings");
    }
});

/// The file of a network of one layer.
fn file(device: &Device, algorithm: Algorithm) -> Vec<u8> {
    let pattern = generate::uniform(19, 7, 0.6, 1).expect("a pattern");
    // Numbers of bfloat16, which all kernels take.
    let cut = |value: f32| f32::from_bits(value.to_bits() & 0xffff_0000);
    let values = generate::random_values(pattern.nnz(), 2).into_iter().map(cut).collect();
    let weights = Csr::with_values(pattern, values).expect("a value a nonzero");
    let layer = Layer::new(weights, Bias::Scalar(-0.1), Activation::Relu).expect("a layer");
    let options = Options::default().algorithm(algorithm);
    let packed = PackedNetwork::new(device, &[layer], ROWS, options).expect("a network");
    let mut bytes = Vec::new();
    packed.write(&mut bytes).expect("writing to memory");
    bytes
}

/// Bytes that are changed where the input says: two bytes of a place, and one that is put there.
fn changed(mut bytes: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    let body = usize::from_le_bytes(bytes[START - 8..START].try_into().expect("8 bytes"));
    let head = START + body;
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        // The length of the head stays, by which the sums are found.
        if let Some(byte) = bytes.get_mut(at).filter(|_| !(START - 8..START).contains(&at)) {
            *byte = change[2];
        }
    }
    // The sum of the one layer ends the head.
    let words = Sha256::digest(&bytes[head + SUM..]);
    bytes[head - SUM..head].copy_from_slice(&words);
    let sum = Sha256::digest(&bytes[..head]);
    bytes[head..head + SUM].copy_from_slice(&sum);
    bytes
}
