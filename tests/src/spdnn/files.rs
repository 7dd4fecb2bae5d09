//! Packed networks that are saved, and loaded again.
use std::fs;

use anyhow::{Context as _, Result, ensure};
use lacuna::matrix::io::ReadError;
use lacuna::spdnn::{Algorithm, PackedNetwork};
use lacuna::{Error, SparseNetwork};

use super::conform::{References, algorithms, on_tensor_cores, run_on, with_and_without_pruning};
use super::{Network, shapes};
use crate::expect::{refused, same_bits};
use crate::{Case, Context};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "spdnn/files/loaded",
            "networks of all kernels, saved and loaded, give the same bits",
            loaded,
        ),
        Case::new("spdnn/files/damaged", "a file that is damaged, cut, or no network is refused", damaged),
    ]
}

fn loaded(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 40)?;
    let worst = loaded_by(cx, &network, &algorithms(cx, &network))?;
    // What tensor cores do: the others had all bits of `f32`.
    let network = network.in_bf16()?;
    Ok(worst.max(loaded_by(cx, &network, &on_tensor_cores(cx, &network))?))
}

fn loaded_by(cx: &Context<'_>, network: &Network, algorithms: &[Algorithm]) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("network");
    let references = References::of(network)?;
    let mut worst = 0.0_f64;
    for &algorithm in algorithms {
        for options in with_and_without_pruning(algorithm) {
            let packed = PackedNetwork::new(cx.device, &network.layers, network.rows, options)?;
            packed.save(&path)?;
            let loaded = PackedNetwork::load(cx.device, &path).with_context(|| format!("{options:?}"))?;
            ensure!(loaded.bytes() == packed.bytes(), "{} bytes, not {}", loaded.bytes(), packed.bytes());
            let first = SparseNetwork::from_packed(cx.device, &packed)?;
            let again = SparseNetwork::from_packed(cx.device, &loaded)?;
            let streamed = SparseNetwork::streamed(cx.device, &loaded, 1 << 10)?;
            ensure!(*again.options() == options, "loaded with {:?}", again.options());
            let report = |network: &SparseNetwork| format!("{:?}", network.report());
            ensure!(report(&first) == report(&again), "{} became {}", report(&first), report(&again));
            let samples = first.upload(cx.stream, &network.dense()?)?;
            let expected = run_on(cx, &first, &samples)?;
            worst = worst.max(references.by(network, algorithm).check(&expected.scores)?.worst_over_bound);
            for network in [&again, &streamed] {
                let got = run_on(cx, network, &samples)?;
                same_bits("saved, then loaded", &expected.scores, &got.scores, network.outputs())?;
                ensure!(
                    expected.inference == got.inference,
                    "{:?}, not {:?}",
                    got.inference,
                    expected.inference
                );
            }
        }
    }
    Ok(worst)
}

fn damaged(cx: &Context<'_>) -> Result<f64> {
    let network = shapes::irregular(cx.seed, 40)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("network");
    let packed = PackedNetwork::new(cx.device, &network.layers, network.rows, Default::default())?;
    packed.save(&path)?;
    let whole = fs::read(&path)?;
    let is_of_file = |error: &Error| matches!(error, Error::Read(ReadError::File { .. }));
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        bytes
    };
    let damages = [
        ("a bit of the last layer", flipped(whole.len() - 1), "the file is damaged"),
        ("a bit of the head", flipped(40), "the checksum of the head"),
        ("cut", whole[..whole.len() - 5].to_vec(), "bytes, got"),
        ("empty", Vec::new(), "the start of a packed network"),
        ("a matrix", b"%%MatrixMarket".to_vec(), "the start of a packed network"),
    ];
    for (what, bytes, says) in damages {
        fs::write(&path, bytes)?;
        refused(
            what,
            PackedNetwork::load(cx.device, &path),
            is_of_file,
            &[says, &path.display().to_string()],
        )?;
    }
    Ok(0.0)
}
