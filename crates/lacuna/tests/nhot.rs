//! The lookup's interface: shapes, options, gradients, and what is refused.
use lacuna::{Bags, BeamSearch, Device, Error, NHot, Stream, nhot};

/// Rows 1 2, 10 20, 100 200, 1000 2000.
const TABLE: [f32; 8] = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0, 1000.0, 2000.0];
const OFFSETS: [usize; 5] = [0, 2, 2, 5, 6];

fn setting() -> (Stream, Bags) {
    let device = Device::simulator();
    let bags = Bags::new(&device, 4, &OFFSETS, &[3, 1, 1, 1, 0, 2]).unwrap();
    (device.stream().unwrap(), bags)
}

fn looked_up(stream: &Stream, bags: &Bags, options: nhot::Options) -> Vec<f32> {
    let plan = NHot::plan_with(bags, 2, options).unwrap();
    let table = bags.device().upload(&TABLE).unwrap();
    let mut out = bags.device().uninitialized(plan.output_len()).unwrap();
    plan.run(stream, bags, table.as_slice(), out.as_slice_mut()).unwrap();
    out.download(stream).unwrap()
}

#[test]
fn sums_means_weights_and_padding() {
    let (stream, bags) = setting();
    let sums = [1010.0, 2020.0, 0.0, 0.0, 21.0, 42.0, 100.0, 200.0];
    assert_eq!(looked_up(&stream, &bags, nhot::Options::default()), sums);
    let transposed = nhot::Options::default().layout(nhot::Layout::Transposed);
    let turned = [1010.0, 0.0, 21.0, 100.0, 2020.0, 0.0, 42.0, 200.0];
    assert_eq!(looked_up(&stream, &bags, transposed), turned);
    let means = nhot::Options::default().mode(nhot::Mode::Mean).padding_index(Some(1));
    let expected = [1000.0, 2000.0, 0.0, 0.0, 1.0, 2.0, 100.0, 200.0];
    assert_eq!(looked_up(&stream, &bags, means), expected);
    let weighted = bags.with_weights(&[0.5, 2.0, 1.0, -1.0, 3.0, 0.0]).unwrap();
    let expected = [520.0, 1040.0, 0.0, 0.0, 3.0, 6.0, 0.0, 0.0];
    assert_eq!(looked_up(&stream, &weighted, nhot::Options::default()), expected);
}

#[test]
fn gradients_of_the_whole_table_and_of_named_rows() {
    let (stream, bags) = setting();
    let plan = NHot::<f32>::plan_with(&bags, 2, nhot::Options::default().padding_index(Some(0))).unwrap();
    let output_gradient = bags.device().upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
    let mut gradient = bags.device().upload(&[f32::NAN; 8]).unwrap();
    plan.backward_table(&stream, &bags, output_gradient.as_slice(), gradient.as_slice_mut()).unwrap();
    assert_eq!(gradient.download(&stream).unwrap(), [0.0, 0.0, 11.0, 14.0, 7.0, 8.0, 1.0, 2.0]);
    assert_eq!(plan.named_rows().unwrap().download(&stream).unwrap(), [1, 2, 3]);
    let mut named = bags.device().upload(&[f32::NAN; 6]).unwrap();
    plan.backward_named(&stream, &bags, output_gradient.as_slice(), named.as_slice_mut()).unwrap();
    assert_eq!(named.download(&stream).unwrap(), [11.0, 14.0, 7.0, 8.0, 1.0, 2.0]);
    let table = bags.device().upload(&TABLE).unwrap();
    let mut weights = bags.device().upload(&[f32::NAN; 6]).unwrap();
    plan.backward_weights(
        &stream,
        &bags,
        output_gradient.as_slice(),
        table.as_slice(),
        weights.as_slice_mut(),
    )
    .unwrap();
    assert_eq!(weights.download(&stream).unwrap(), [5000.0, 50.0, 170.0, 170.0, 0.0, 2300.0]);
}

#[test]
fn once_on_the_best_device() {
    // A GPU, where there is one, and otherwise the simulator.
    let got = nhot(&TABLE, 2, &[0, 1, 3], &[3_u64, 0, 1]).unwrap();
    assert_eq!(got, [1000.0, 2000.0, 11.0, 22.0]);
    let error = nhot(&TABLE, 3, &[0], &[0_u32; 0]).unwrap_err();
    assert!(matches!(error, Error::Length { what: "the table", .. }), "{error}");
}

#[test]
fn every_algorithm_is_found_by_its_name() {
    let (stream, bags) = setting();
    let plan = NHot::<f32>::plan(&bags, 2).unwrap();
    let legal = &plan.legal()[0];
    assert_eq!(legal[0].entry.name, plan.choice().entry.name);
    for choice in legal {
        let options = nhot::Options::default().algorithm(choice.algorithm);
        assert_eq!(NHot::<f32>::plan_with(&bags, 2, options).unwrap().choice().entry.name, choice.entry.name);
        assert_eq!(looked_up(&stream, &bags, options)[..2], [1010.0, 2020.0], "{}", choice.entry.name);
    }
    let strange = nhot::Algorithm::Subwarp { vector: 3, lanes: 32, chunks: 1, split: 1 };
    let error = NHot::<f32>::plan_with(&bags, 2, nhot::Options::default().algorithm(strange)).unwrap_err();
    assert!(matches!(error, Error::Illegal { .. }), "{error}");
}

#[test]
fn bags_are_checked_when_they_are_made() {
    let device = Device::simulator();
    for (offsets, indices) in [
        (vec![], vec![]),
        (vec![0, 2], vec![0]),
        (vec![0, 1], vec![4]),
        (vec![0, 2, 1], vec![0]),
        (vec![1, 1], vec![0]),
    ] {
        let error = Bags::<u32>::new(&device, 4, &offsets, &indices).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{offsets:?}, {indices:?}: {error}");
    }
    let (stream, bags) = setting();
    assert!(matches!(bags.with_weights(&[1.0]).unwrap_err(), Error::Length { .. }));
    let plan = NHot::<f32>::plan(&bags, 2).unwrap();
    let (_, others) = setting();
    let (table, mut out) = (bags.device().zeros(8).unwrap(), bags.device().zeros(8).unwrap());
    let error = plan.run(&stream, &others, table.as_slice(), out.as_slice_mut()).unwrap_err();
    assert!(matches!(error, Error::OtherPattern { .. }), "{error}");
}

/// Two sentences of two beams over four tokens, after a step in which beams take tokens 1 and 3, and 2 and 0.
fn stepped(device: &Device, stream: &Stream) -> lacuna::topn::BeamState {
    let search = BeamSearch::plan(device, 2, 2, 4, 0).unwrap();
    let mut state = search.start_with(3).unwrap();
    assert_eq!(state.token_indices().as_slice().download(stream).unwrap(), [3; 4]);
    assert_eq!(state.parent_indices().as_slice().download(stream).unwrap(), [0, 0, 2, 2]);
    let unread = [0.0_f32; 4];
    let logits = [[0.0, 3.0, 1.0, 2.0], unread, [2.0, 0.0, 3.0, 1.0], unread].concat();
    let logits = device.upload(&logits).unwrap();
    search.step(stream, logits.as_slice(), &mut state).unwrap();
    state
}

#[test]
fn tokens_and_parents_of_beams_are_looked_up_on_the_device() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut state = stepped(&device, &stream);
    let bags = Bags::<u32>::new(&device, 4, &[0, 1, 2, 3, 4], &[0; 4]).unwrap();
    let bags = bags.with_weights(&[1.0, 2.0, 1.0, 1.0]).unwrap();
    let plan = NHot::plan(&bags, 2).unwrap();
    let table = device.upload(&TABLE).unwrap();
    let mut out = device.uninitialized(plan.output_len()).unwrap();
    let mut look_up = |indices: nhot::DeviceIndices<'_>| {
        plan.run_with_indices(&stream, &bags, indices, table.as_slice(), out.as_slice_mut()).unwrap();
        out.download(&stream).unwrap()
    };
    assert_eq!(look_up(state.token_indices()), [10.0, 20.0, 2000.0, 4000.0, 100.0, 200.0, 1.0, 2.0]);
    // Beams of the second sentence are beams 2 and 3 of all.
    assert_eq!(look_up(state.parent_indices()), [1.0, 2.0, 2.0, 4.0, 100.0, 200.0, 100.0, 200.0]);
    let start = BeamSearch::<f32>::plan(&device, 2, 2, 4, 0).unwrap().start().unwrap();
    state.copy_from(&stream, &start).unwrap();
    assert_eq!(look_up(state.token_indices()), [1.0, 2.0, 2.0, 4.0, 1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn indices_that_may_be_beyond_the_table_are_refused() {
    let device = Device::simulator();
    let stream = device.stream().unwrap();
    let mut state = stepped(&device, &stream);
    let run = |rows: usize, offsets: &[usize]| {
        let bags = Bags::<u32>::new(&device, rows, offsets, &vec![0; offsets.len() - 1]).unwrap();
        let plan = NHot::<f32>::plan(&bags, 1).unwrap();
        let table = device.zeros(plan.table_len()).unwrap();
        let mut out = device.zeros(plan.output_len()).unwrap();
        plan.run_with_indices(&stream, &bags, state.token_indices(), table.as_slice(), out.as_slice_mut())
    };
    run(5, &[0, 1, 2, 3, 4]).unwrap();
    let error = run(3, &[0, 1, 2, 3, 4]).unwrap_err();
    assert!(error.to_string().contains("at most 3, the rows of the table"), "{error}");
    assert!(matches!(run(4, &[0, 1, 2, 3]), Err(Error::Length { expected: 3, got: 4, .. })));
    // Nor can beams get tokens of a larger vocabulary.
    let other = BeamSearch::<f32>::plan(&device, 2, 2, 5, 0).unwrap();
    let logits = device.zeros::<f32>(other.input_len()).unwrap();
    let error = other.step(&stream, logits.as_slice(), &mut state).unwrap_err();
    assert!(error.to_string().contains("one of 5 tokens"), "{error}");
    assert!(state.copy_from(&stream, &other.start().unwrap()).is_err());
    assert!(other.start_with(5).is_err());
}
