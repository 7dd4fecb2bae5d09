//! Any bytes as a container of weights: an error, or weights that survive being written and read.
#![no_main]

use lacuna_matrix::io::safetensors::Container;
use lacuna_models::files::Archive;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(archive) =
        Container::new(bytes).map_err(Into::into).and_then(|container| Archive::read(&container, |_, _| {}))
    else {
        return;
    };
    let mut written = Vec::new();
    archive.tensors().write(&mut written).expect("what was read can be written");
    let read = Container::new(&written).expect("what was written");
    let read = Archive::read(&read, |_, _| {}).expect("what was written");
    assert_eq!(read.others, archive.others);
    assert!(read.sparse.keys().eq(archive.sparse.keys()));
    for ((name, read), (known, tensor)) in read.dense.iter().zip(archive.dense.iter()) {
        assert_eq!((name, read.shape()), (known, tensor.shape()));
        // A NaN may come back as another.
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(read.values().iter().zip(tensor.values()).all(same));
    }
    let _ = archive.into_weights();
});
