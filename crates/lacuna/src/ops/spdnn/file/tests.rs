//! Files that come back, and files that must not.
use std::ops::Range;

use half::{bf16, f16};
use lacuna_kernels::spdnn::{MMA_OUTPUTS, Tile};
use lacuna_kernels::{Entry, ValueType, entries};
use lacuna_matrix::{Csr, generate};

use super::super::prepared::{Places, Prepared};
use super::*;
use crate::SparseNetwork;
use crate::spdnn::{Activation, Algorithm, Bias, Features, Layer, Options};

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
const ROWS: usize = 3;
/// Wider layers that are well formed are not run.
const MOST_WIDTH: usize = 1 << 12;
const SUM: usize = 32;

/// Two layers, of 7 inputs, 19 outputs, and 5; of the first some outputs have the same inputs, and the second has weights of `f16`.
fn layers() -> Vec<Layer> {
    let first = generate::uniform(6, 7, 0.6, 1).unwrap().select_rows((0..19).map(|row| row % 6)).unwrap();
    let values = exact(first.nnz(), 2);
    let first = Csr::with_values(first, values).unwrap();
    let second = generate::uniform(5, 19, 0.7, 3).unwrap();
    let values = exact(second.nnz(), 4);
    let second = Csr::with_values(second, values).unwrap();
    let clamp = Activation::Clamp { lo: 0.0, hi: 32.0 };
    let bias = Bias::PerOutput((0..5_u8).map(|output| 0.1 * f32::from(output)).collect());
    vec![
        Layer::new(first, Bias::Scalar(-0.1), clamp).unwrap(),
        Layer::of_f16(&second.map_values(f16::from_f32), bias, Activation::Identity).unwrap(),
    ]
}

/// Random numbers of bfloat16, which all kernels take.
fn exact(len: usize, seed: u64) -> Vec<f32> {
    generate::random_values(len, seed).into_iter().map(|x| bf16::from_f32(x).to_f32()).collect()
}

fn packed(device: &Device, algorithm: Algorithm, layers: &[Layer]) -> PackedNetwork {
    PackedNetwork::new(device, layers, ROWS, Options::default().algorithm(algorithm)).unwrap()
}

fn bytes(packed: &PackedNetwork) -> Vec<u8> {
    let mut bytes = Vec::new();
    packed.write(&mut bytes).unwrap();
    bytes
}

/// Bytes of a file's head up to its sum.
fn head_end(bytes: &[u8]) -> usize {
    24 + usize::from_le_bytes(bytes[16..24].try_into().unwrap())
}

/// Gives the head the sum that it should have.
fn seal(bytes: &mut [u8]) {
    let end = head_end(bytes);
    let sum = words::sum_of_bytes(&bytes[..end]);
    bytes[end..end + SUM].copy_from_slice(&sum);
}

/// Reads a network. If that works, it is written as it was.
fn read_again(device: &Device, bytes: &[u8]) -> Result<PackedNetwork> {
    let network = PackedNetwork::read(device, bytes)?;
    assert_eq!(self::bytes(&network), bytes);
    Ok(network)
}

/// Where weights and biases of a layer are.
fn numbers(layer: &Prepared) -> [Range<usize>; 2] {
    let per_word = if layer.choice.entry.tile.weights == ValueType::F16 { 2 } else { 1 };
    let (weights, padded, bias, outputs) = match &layer.places {
        Places::Groups(of) => (of.weights, of.padded.div_ceil(per_word), of.bias, of.outputs - of.bias),
        Places::Csr(of) => (of.weights, layer.edges, of.bias, layer.outputs as u64),
        Places::Staged(of) => (of.weights, of.padded, of.bias, layer.outputs as u64),
        // The biases are the last array.
        Places::Steps(of) => (of.weights, of.padded() / 2, of.bias, u64::from((of.groups + 1) * MMA_OUTPUTS)),
    };
    [weights as usize..weights as usize + padded, bias as usize..(bias + outputs) as usize]
}

/// Also runs it, where that is no long work: the simulator finds nothing.
fn read_and_run(device: &Device, bytes: &[u8]) -> Result<PackedNetwork> {
    let packed = read_again(device, bytes)?;
    let network = SparseNetwork::from_packed(device, &packed)?;
    if network.inputs().max(network.outputs()) <= MOST_WIDTH {
        let samples = (0..ROWS * network.inputs()).map(|at| (at % 3) as f32).collect();
        let samples = Features::dense(ROWS, network.inputs(), samples).unwrap();
        network.infer(&device.stream().unwrap(), &samples).unwrap();
    }
    Ok(packed)
}

#[test]
fn places_follow_from_sizes() {
    let device = Device::simulator();
    for algorithm in ALGORITHMS {
        let layers = layers();
        let packed = packed(&device, algorithm, &layers);
        let read = PackedNetwork::read(&device, &bytes(&packed)[..]).unwrap();
        assert_eq!(format!("{:?}", read.layers), format!("{:?}", packed.layers));
        assert_eq!(format!("{:?}", read.arrays), format!("{:?}", packed.arrays));
        read_and_run(&device, &bytes(&packed)).unwrap();
    }
}

#[test]
fn any_flipped_bit_is_found() {
    let device = Device::simulator();
    let whole = bytes(&packed(&device, ALGORITHMS[1], &layers()));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = PackedNetwork::read(&device, &damaged[..]).unwrap_err();
        assert!(error.is_usage(), "byte {at}: {error}");
        let expected = match at {
            0..8 => "expected the start of a packed network",
            8..16 => "version",
            // Another length: the sum is elsewhere, or past the end.
            16..24 => "head",
            at if at < head_end(&whole) + SUM => "the checksum of the head",
            _ => "the checksum of layer",
        };
        assert!(error.to_string().contains(expected), "byte {at}: {error}");
    }
}

#[test]
fn any_cut_is_found() {
    let device = Device::simulator();
    let whole = bytes(&packed(&device, ALGORITHMS[1], &layers()));
    for end in 0..whole.len() {
        let error = PackedNetwork::read(&device, &whole[..end]).unwrap_err();
        assert!(matches!(error, Error::Read(_)), "{end}: {error}");
    }
    let error = PackedNetwork::read(&device, &[whole.clone(), vec![0]].concat()[..]).unwrap_err();
    assert!(error.to_string().contains("the end of the file"), "{error}");
}

/// Each word of each array, changed, with the right sums.
#[test]
fn wrong_words_are_refused_or_do_no_harm() {
    let device = Device::simulator();
    for algorithm in ALGORITHMS {
        let packed = packed(&device, algorithm, &layers());
        let whole = bytes(&packed);
        let mut start = head_end(&whole) + SUM;
        let mut refused = 0;
        for (layer, Arrays { words }) in packed.layers.layers.iter().zip(&packed.arrays) {
            let old = words::sum(words);
            let place = whole.windows(SUM).position(|bytes| bytes == old).unwrap();
            for (at, &word) in words.iter().enumerate() {
                for wrong in [word.wrapping_add(1), word ^ 1 << 16, u32::MAX] {
                    let mut words = words.clone();
                    words[at] = wrong;
                    let mut changed = whole.clone();
                    changed[start + 4 * at..][..4].copy_from_slice(&wrong.to_le_bytes());
                    changed[place..place + SUM].copy_from_slice(&words::sum(&words));
                    seal(&mut changed);
                    // Of numbers any bits are right.
                    let is_number = numbers(layer).iter().any(|numbers| numbers.contains(&at));
                    let read = if is_number { read_again } else { read_and_run };
                    refused += usize::from(read(&device, &changed).is_err());
                }
            }
            start += 4 * words.len();
        }
        assert!(refused > 100, "{algorithm:?}: {refused} refused");
    }
}

/// Each byte of the head, changed, with the right sum.
#[test]
fn wrong_heads_are_refused_or_do_no_harm() {
    let device = Device::simulator();
    // One of each kind: by groups, by rows, in stages.
    for algorithm in &ALGORITHMS[3..] {
        let whole = bytes(&packed(&device, *algorithm, &layers()));
        for at in 24..head_end(&whole) {
            for wrong in [whole[at].wrapping_add(1), whole[at] ^ 0x80] {
                let mut changed = whole.clone();
                changed[at] = wrong;
                seal(&mut changed);
                let _ = read_and_run(&device, &changed);
            }
        }
    }
}

#[test]
fn a_device_that_cannot_run_a_kernel_refuses_it() {
    let device = Device::simulator();
    let file = |algorithm| bytes(&packed(&device, algorithm, &layers()));
    let old = DeviceInfo { sm: 75, name: "T4".into(), ..device.info().clone() };
    let error = read(&old, &file(ALGORITHMS[3])[..]).unwrap_err();
    let says = "T4 cannot do spdnn_f32_group_tiles_r16_t2_w4; pack the network for this device";
    assert_eq!(error.to_string(), says);
    let network = read(&old, &file(ALGORITHMS[0])[..]).unwrap();
    SparseNetwork::from_packed(&device, &network).unwrap();
    let network = packed(&device, ALGORITHMS[3], &layers());
    assert_eq!(network.layers.expect_run_on(&old).unwrap_err().to_string(), says);
}

#[test]
fn files_are_whole_and_told_by_their_paths() {
    let device = Device::simulator();
    let network = packed(&device, ALGORITHMS[0], &layers());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network");
    network.save(&path).unwrap();
    network.save(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes(&network));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary is left");
    assert_eq!(bytes(&PackedNetwork::load(&device, &path).unwrap()), bytes(&network));

    let refused = |path: &Path, says: &str| {
        let error = PackedNetwork::load(&device, path).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(says) && message.contains(&path.display().to_string()), "{message}");
        assert!(matches!(error, Error::Read(ReadError::File { .. })), "{error:?}");
    };
    let mut changed = bytes(&network);
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&path, &changed).unwrap();
    refused(&path, "the checksum of layer 1");
    fs::write(&path, &changed[..changed.len() - 1]).unwrap();
    refused(&path, "bytes, got");
    changed.push(0);
    fs::write(&path, &changed).unwrap();
    refused(&path, "the end of the file");
    changed[8] = 7;
    fs::write(&path, &changed).unwrap();
    refused(&path, "version 7 is not supported; supported: version 2");
    refused(folder.path(), "it is not a regular file");
    refused(&folder.path().join("none"), "none");
    let error = network.save(folder.path().join("none/network")).unwrap_err();
    assert!(matches!(error, Error::Write(_)), "{error}");
}

/// What the head says of the layers is checked against the others, and against the options.
#[test]
fn heads_that_contradict_themselves_are_refused() {
    let device = Device::simulator();
    let refused = |network: &PackedNetwork, says: &str| {
        let error = PackedNetwork::read(&device, &bytes(network)[..]).unwrap_err();
        assert!(error.to_string().contains(says) && error.is_usage(), "{error}");
    };
    let changed = |change: &dyn Fn(&mut Layers)| {
        let PackedNetwork { layers, arrays } = packed(&device, Algorithm::Baseline, &self::layers());
        let mut layers = Arc::into_inner(layers).unwrap();
        change(&mut layers);
        PackedNetwork { layers: Arc::new(layers), arrays }
    };
    refused(&changed(&|layers| layers.options.algorithm = Algorithm::Auto), "a kernel of algorithm Auto");
    refused(&changed(&|layers| layers.options.algorithm = Algorithm::StagedEll), "of algorithm StagedEll");
    refused(&changed(&|layers| layers.layers[1].inputs = 20), "19, the outputs of layer 0");
    refused(&changed(&|layers| layers.layers[0].inputs = 1), "in layer 0 inputs below 1");
    refused(&changed(&|layers| layers.layers[0].inputs = 1 << 30), "at most 1073741823 inputs");
    refused(&changed(&|layers| layers.layers[1].keeps_zero = true), "that keep zeros");
    refused(&changed(&|layers| layers.layers[0].limits.lo = 33.0), "limits lo <= hi");
    refused(&changed(&|layers| layers.layers[0].limits.hi = f32::NAN), "limits lo <= hi");
    refused(&changed(&|layers| layers.layers[0].edges += 1), "in layer 0 offsets of edges that end at");
    refused(&changed(&|layers| layers.layers[0].edges += 99), "sizes that make up layer 0");
    refused(&changed(&|layers| layers.layers.clear()), "the number of layers is 0");
    let compact = entries_spdnn("spdnn_compact");
    refused(&changed(&|layers| layers.layers[0].choice.entry = compact), "spdnn_compact");
    let bits = entries_spdnn("spdnn_b32_groups_r16_t4_w4");
    refused(&changed(&|layers| layers.layers[0].choice.entry = bits), "spdnn_b32");

    // A name that no kernel has.
    let mut whole = bytes(&packed(&device, Algorithm::Baseline, &layers()));
    let at = whole.windows(8).position(|bytes| bytes == b"baseline").unwrap();
    whole[at] = b'B';
    seal(&mut whole);
    let error = PackedNetwork::read(&device, &whole[..]).unwrap_err();
    let says = "`spdnn_f32_Baseline` is not supported; supported: the kernels of this version";
    assert!(error.to_string().contains(says), "{error}");
}

fn entries_spdnn(name: &str) -> &'static Entry<Tile> {
    entries::spdnn().iter().find(|entry| entry.name == name).unwrap()
}
