//! What holds for all layers, images and bytes.

use lacuna_matrix::{Coo, Csr};
use lacuna_models::challenge::images::{Digits, Labels};
use lacuna_models::challenge::{binary, categories, gz, tsv};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::io::Read;

const NEURONS: usize = 9;

/// Layers with any finite values, empty ones among them.
fn layers() -> impl Strategy<Value = Csr<f32>> {
    let value = any::<f32>().prop_filter("finite", |value| value.is_finite());
    (btree_set(0..NEURONS * NEURONS, 0..=40), vec(value, 40)).prop_map(|(places, values)| {
        let rows = places.iter().map(|place| (place / NEURONS) as u32).collect();
        let columns = places.iter().map(|place| (place % NEURONS) as u32).collect();
        let values = values[..places.len()].to_vec();
        Coo::new(NEURONS, NEURONS, rows, columns, values).unwrap().to_csr().unwrap()
    })
}

/// Texts that come near to a file.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => (0..=NEURONS as u32 + 1).prop_map(|number| number.to_string()),
        4 => Just("\t".to_string()),
        3 => Just("\n".to_string()),
        1 => Just("-1".to_string()),
        1 => Just("4294967295".to_string()),
        1 => any::<f32>().prop_map(|number| number.to_string()),
    ];
    vec(part, 0..40).prop_map(|parts| parts.concat())
}

/// Values by their bits: zeros have a sign.
fn bits(layer: &Csr<f32>) -> Vec<u32> {
    layer.values().iter().map(|value| value.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_never_panic(bytes in vec(any::<u8>(), 0..200), edges in 0..20usize) {
        let _ = tsv::read_layer(&bytes[..], NEURONS);
        let _ = tsv::read_images(&bytes[..], NEURONS, NEURONS);
        let _ = categories::read(&bytes[..], NEURONS);
        let _ = binary::read_layers(&bytes[..], NEURONS, edges);
        let _ = Digits::read(&bytes[..]);
        let _ = Labels::read(&bytes[..]);
        let packed = [&[0x1f, 0x8b][..], &bytes].concat();
        let _ = gz::unpack(&packed[..]).unwrap().read_to_end(&mut Vec::new());
    }

    #[test]
    fn texts_never_panic(text in texts()) {
        let _ = tsv::read_layer(text.as_bytes(), NEURONS);
        let _ = tsv::read_images(text.as_bytes(), NEURONS, NEURONS);
        let _ = categories::read(text.as_bytes(), NEURONS);
    }

    #[test]
    fn layers_are_read_as_they_were_written(layer in layers()) {
        let (mut text, mut words) = (Vec::new(), Vec::new());
        tsv::write_layer(&layer, &mut text).unwrap();
        binary::write_layer(&layer, &mut words).unwrap();
        let read = [
            tsv::read_layer(&text[..], NEURONS).unwrap(),
            binary::read_layer(&mut &words[..], NEURONS, layer.nnz()).unwrap(),
        ];
        for read in read {
            prop_assert_eq!(read.pattern(), layer.pattern());
            prop_assert_eq!(bits(&read), bits(&layer));
        }
    }

    #[test]
    fn images_and_categories_too(layer in layers()) {
        let mut written = Vec::new();
        tsv::write_images(layer.pattern(), &mut written).unwrap();
        prop_assert_eq!(&tsv::read_images(&written[..], NEURONS, NEURONS).unwrap(), &**layer.pattern());
        let chosen = layer.pattern().row_columns(0);
        written.clear();
        categories::write(chosen, &mut written).unwrap();
        prop_assert_eq!(categories::read(&written[..], NEURONS).unwrap(), chosen);
    }
}
