//! Values of random networks lie where nothing else is while they are needed.
use std::collections::BTreeMap;

use lacuna::conv::MapLayout;
use lacuna_models::memory::{Home, Memory};
use lacuna_models::network::{
    Add, Concat, Conv, Flatten, FlattenNhwc, Network, Operation, Scale, Shape, ValueId,
};
use lacuna_models::networks::{DenseNet, MobileNetV1, ResNet, Vgg};
use proptest::prelude::*;

/// A network of what of these layers fits together: the numbers choose a type and its inputs.
fn drawn(images: usize, layers: &[(u8, [usize; 3], usize)]) -> Option<Network> {
    let mut builder = Network::builder(Shape::maps(images, 3, [3, 3]));
    let other = builder.add_input(Shape::maps(images, 2, [3, 3]));
    let mut values = vec![builder.input(), other];
    for (number, &(kind, picks, channels)) in layers.iter().enumerate() {
        // Mostly of the last values, so that chains are long.
        let pick = |pick: usize| values[values.len() - 1 - (pick % 6).min(values.len() - 1)];
        let all = picks.map(pick);
        let (operation, inputs): (Operation, &[ValueId]) = match kind {
            0 => (Concat.into(), &all[..2]),
            1 => (Concat.into(), &all),
            2 => (Flatten.into(), &all[..1]),
            3 => (Add::new().into(), &all[..2]),
            4 => (Scale::norm().into(), &all[..1]),
            5 => (FlattenNhwc.into(), &all[..1]),
            _ => (Conv::new(channels, [1, 1]).into(), &all[..1]),
        };
        // What does not fit is left out.
        values.extend(builder.layer(format!("layer{number}"), operation, inputs));
    }
    builder.finish(*values.last()?).ok()
}

/// Elements of a value, each told from all others; of moved ones those that were moved.
fn tokens(network: &Network, layer: usize, known: &[Vec<u64>], layout: MapLayout) -> Vec<u64> {
    let layer = &network.layers()[layer];
    let of = |value: &ValueId| &known[value.index()];
    match layer.operation {
        Operation::Flatten(_) if layout == MapLayout::Nchw => of(&layer.inputs[0]).clone(),
        Operation::FlattenNhwc(_) if layout == MapLayout::Nhwc => of(&layer.inputs[0]).clone(),
        Operation::Flatten(_) | Operation::FlattenNhwc(_) => {
            let shape = network.shape(layer.inputs[0]);
            let len = shape.image_len();
            // Of matrices that are transposed, the columns.
            let width = if layout == MapLayout::Nchw { shape.pixels() } else { shape.channels };
            let height = len / width.max(1);
            let from = |at: usize| at / len * len + at % height * width + at % len / height;
            (0..shape.elements()).map(|at| of(&layer.inputs[0])[from(at)]).collect()
        }
        Operation::Concat(_) => {
            let images = network.shape(layer.output).images;
            let image = |image: usize| {
                layer.inputs.iter().flat_map(move |input| {
                    let len = network.shape(*input).image_len();
                    of(input)[image * len..][..len].iter().copied()
                })
            };
            (0..images).flat_map(image).collect()
        }
        _ => fresh(network, layer.output),
    }
}

fn fresh(network: &Network, value: ValueId) -> Vec<u64> {
    let elements = network.shape(value).elements() as u64;
    (0..elements).map(|element| ((value.index() as u64 + 1) << 32) + element).collect()
}

/// Runs a network of tokens in the planned memory, and gives false where a layer finds others than were written.
fn is_kept(network: &Network, memory: &Memory, layout: MapLayout) -> bool {
    let mut contents: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
    let home = |home: Home| home as u8;
    let mut known: Vec<Vec<u64>> = network.inputs().iter().map(|&input| fresh(network, input)).collect();
    contents.insert(home(Home::Input), known.concat());
    contents.insert(home(Home::Output), vec![0; network.output_shape().elements()]);
    contents.insert(home(Home::Arena), vec![0; memory.peak()]);
    for (number, layer) in network.layers().iter().enumerate() {
        for &input in &layer.inputs {
            let place = memory.place(input);
            if contents[&home(place.home)][place.range()] != known[input.index()] {
                return false;
            }
        }
        let result = tokens(network, number, &known, layout);
        let place = memory.place(layer.output);
        if place.home == Home::Input {
            return false;
        }
        if let Some(contents) = contents.get_mut(&home(place.home)) {
            contents[place.range()].copy_from_slice(&result);
        }
        known.push(result);
    }
    contents[&home(Home::Output)] == known[network.output().index()]
}

proptest! {
    #[test]
    fn values_are_kept_while_they_are_needed(
        images in 1_usize..3,
        is_last in any::<bool>(),
        layers in prop::collection::vec((0_u8..10, any::<[usize; 3]>(), 1_usize..9), 1..25),
    ) {
        let layout = if is_last { MapLayout::Nhwc } else { MapLayout::Nchw };
        if let Some(network) = drawn(images, &layers) {
            let memory = Memory::plan(&network, layout, 4);
            // With channels last, concatenated elements lie otherwise; the tokens of a value are only a name then.
            prop_assert!(is_kept(&network, &memory, layout));
            prop_assert!(memory.peak() <= memory.sum().next_multiple_of(64) + 64 * network.shapes().len());
        }
    }
}

#[test]
fn a_value_that_is_lost_is_seen() {
    let mut builder = Network::builder(Shape::maps(1, 3, [3, 3]));
    let x = builder.layer("a", Conv::new(4, [1, 1]), &[builder.input()]).unwrap();
    let y = builder.layer("b", Conv::new(4, [1, 1]), &[x]).unwrap();
    let chain = builder.clone();
    let z = builder.layer("c", Conv::new(4, [1, 1]), &[y]).unwrap();
    let z = builder.layer("d", Add::new(), &[z, x]).unwrap();
    let network = builder.finish(z).unwrap();
    // The memory of a chain, in which x is needed no longer.
    let mut builder = chain;
    let z = builder.layer("c", Conv::new(4, [1, 1]), &[y]).unwrap();
    let z = builder.layer("d", Add::new(), &[z, z]).unwrap();
    let other = builder.finish(z).unwrap();
    assert!(is_kept(&network, &Memory::plan(&network, MapLayout::Nchw, 4), MapLayout::Nchw));
    assert!(!is_kept(&network, &Memory::plan(&other, MapLayout::Nchw, 4), MapLayout::Nchw));
}

/// Peaks of whole networks are near the least that there can be, and a small part of what values need without sharing.
#[test]
fn networks_of_papers_have_low_peaks() {
    for images in [1, 16] {
        // The peak over the least: it is the least but for ResNet, which is 10/9 of it.
        for (name, network, over) in [
            ("MobileNetV1", MobileNetV1::default().network(images), 1.0),
            ("ResNet-50", ResNet::R50.network(images), 1.112),
            ("DenseNet-201", DenseNet::D201.network(images), 1.0),
            ("VGG-16", Vgg::V16.network(images), 1.0),
        ] {
            let memory = Memory::plan(&network.unwrap(), MapLayout::Nchw, 4);
            let [peak, least, sum] = [memory.peak(), memory.least(), memory.sum()];
            assert!(peak as f64 <= over * least as f64, "{name}: {peak}, at least {least}");
            assert!(2 * peak < sum, "{name}: {peak} of {sum}");
        }
    }
}
