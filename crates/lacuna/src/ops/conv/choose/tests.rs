//! What is chosen, and how it is split.
use super::*;

fn layer(channels: usize, side: usize, filters: usize) -> Problem {
    Problem::new(Shape::new(channels, [side; 2], filters, [3, 3]).padding([1, 1]))
}

#[test]
fn small_maps_are_split_over_channels() {
    for (channels, side, precision) in [
        (64, 56, Precision::Fma),
        (128, 28, Precision::Single),
        (256, 14, Precision::Fma),
        (512, 7, Precision::Single),
    ] {
        let problem = Problem { precision, ..layer(channels, side, channels) };
        let choice = choose(&problem)[0];
        let is_sparse = matches!(choice.algorithm, Algorithm::SparseTile { .. });
        assert_eq!(is_sparse, precision == Precision::Fma, "{choice:?}");
        let cut = problem.cut(CostModel::hopper(), choice.entry);
        let blocks = cut.tiles * cut.groups * cut.splits;
        assert!(blocks >= 60, "{side}: {cut:?}");
    }
    let many = Problem::new(layer(64, 224, 64).shape.batch(16));
    assert_eq!(many.cut(CostModel::hopper(), choose(&many)[0].entry).splits, 1);
}

#[test]
fn splits_have_channels_each() {
    for channels in [1, 7, 8, 9, 100, 129, 1000] {
        let problem = layer(channels, 7, 32);
        for choice in choose(&problem) {
            let splits = problem.cut(CostModel::hopper(), choice.entry).splits;
            let each = match choice.algorithm {
                Algorithm::MmaTile { .. } | Algorithm::WgmmaTile { .. } => {
                    problem.split_chunks(splits) * MMA_CHANNELS
                }
                _ => problem.split_channels(splits),
            };
            assert!((splits - 1) * each < channels && splits * each >= channels, "{channels}: {splits}");
        }
    }
}

#[test]
fn depthwise_layers_take_tiles_where_they_fit() {
    let has_tiles = |problem: &Problem| {
        choose(problem).iter().any(|choice| matches!(choice.algorithm, Algorithm::DepthwiseNhwc { .. }))
    };
    let of =
        |channels, size, padding| Problem::new(Shape::depthwise(channels, size, [3, 3]).padding(padding));
    let usual = of(64, [112, 112], [1, 1]);
    assert!(matches!(choose(&usual)[0].algorithm, Algorithm::DepthwiseNhwc { .. }));
    // Single channels of `f32` lie anywhere; in 16 bits two make a load.
    assert!(has_tiles(&Problem { vector: 1, ..usual }) && has_tiles(&of(63, [112, 112], [1, 1])));
    let half = |problem| Problem { value: ValueType::F16, ..problem };
    assert!(has_tiles(&half(usual)));
    assert!(
        !has_tiles(&half(Problem { vector: 1, ..usual })) && !has_tiles(&half(of(63, [112, 112], [1, 1])))
    );
    // A tile reaches over an edge by half of the taps, and is no larger than the map.
    assert!(has_tiles(&of(64, [9, 9], [0, 0])) && has_tiles(&of(64, [2, 2], [1, 1])));
    assert!(!has_tiles(&of(64, [9, 9], [2, 1])) && !has_tiles(&of(64, [9, 9], [1, 2])));
    assert!(!has_tiles(&of(64, [1, 9], [1, 1])) && !has_tiles(&of(64, [2, 1], [1, 1])));
    let odd = Problem::new(Shape::depthwise(8, [9, 9], [2, 3]));
    assert_eq!(choose(&odd)[0].algorithm, Algorithm::AnyDepthwise);
}

#[test]
fn depthwise_rows_are_as_wide_as_vectors() {
    let first = |size, vector| {
        let shape = Shape::depthwise(2048, size, [3, 3]).padding([1, 1]);
        match choose(&Problem { vector, layout: MapLayout::Nchw, ..Problem::new(shape) })[0].algorithm {
            Algorithm::DepthwiseNchw { tile } => tile,
            algorithm => panic!("{algorithm:?}"),
        }
    };
    assert_eq!(first([56, 56], 8)[1], 4);
    assert_eq!(first([56, 56], 2)[1], 2);
    assert_eq!(first([56, 54], 8)[1], 2);
    assert_eq!(first([3, 7], 8), [2, 1]);
    let low = Shape::depthwise(2048, [1, 56], [3, 3]).padding([1, 1]);
    let low = Problem { layout: MapLayout::Nchw, ..Problem::new(low) };
    assert!(matches!(choose(&low)[0].algorithm, Algorithm::DepthwiseColumn { .. }));
}

#[test]
fn many_images_take_planes_and_large_tiles() {
    let of = |layout, batch| {
        let (channels, side) = if layout == MapLayout::Nchw { (1024, 7) } else { (256, 28) };
        let shape = Shape::depthwise(channels, [side; 2], [3, 3]).padding([1, 1]).batch(batch);
        choose(&Problem { layout, ..Problem::new(shape) })[0].algorithm
    };
    assert_eq!(of(MapLayout::Nchw, 16), Algorithm::DepthwisePlanes);
    assert_eq!(of(MapLayout::Nhwc, 16), Algorithm::DepthwiseNhwc { tile: [7, 4] });
    assert_eq!(of(MapLayout::Nhwc, 1), Algorithm::DepthwiseNhwc { tile: [7, 2] });
    assert!(matches!(of(MapLayout::Nchw, 1), Algorithm::DepthwiseNchw { .. }));
    // Planes begin at multiples of 16 bytes.
    let shape = Shape::depthwise(1024, [7, 7], [3, 3]).padding([1, 1]).batch(16);
    let unaligned = Problem { layout: MapLayout::Nchw, vector: 2, ..Problem::new(shape) };
    assert!(choose(&unaligned).iter().all(|choice| choice.algorithm != Algorithm::DepthwisePlanes));
}

#[test]
fn rows_of_vectors_have_half_of_the_taps_as_padding_and_whole_rows() {
    let has_rows = |width, padding, stride| {
        let shape = Shape::depthwise(8, [8, width], [3, 3]).padding([padding; 2]).strides([stride; 2]);
        let problem = Problem { layout: MapLayout::Nchw, ..Problem::new(shape) };
        choose(&problem).iter().any(|choice| matches!(choice.algorithm, Algorithm::DepthwiseNchw { .. }))
    };
    assert!(has_rows(8, 1, 1) && has_rows(9, 1, 1) && has_rows(8, 1, 2) && has_rows(9, 1, 2));
    assert!(!has_rows(8, 0, 1) && !has_rows(8, 2, 1) && !has_rows(8, 0, 2));
}

#[test]
fn tensor_cores_are_for_those_who_allow_them() {
    let has_mma = |channels, taps, precision| {
        let shape = Shape::new(channels, [9, 9], 32, taps);
        let is_mma = |choice: &Choice| {
            matches!(choice.algorithm, Algorithm::MmaTile { .. } | Algorithm::WgmmaTile { .. })
        };
        choose(&Problem { precision, ..Problem::new(shape) }).iter().any(is_mma)
    };
    assert!(has_mma(64, [3, 3], Precision::Single) && has_mma(64, [1, 1], Precision::Single));
    assert!(!has_mma(64, [3, 3], Precision::Fma) && !has_mma(63, [1, 1], Precision::Single));
    assert!(has_mma(1, [1, 1], Precision::Tf32) && has_mma(64, [5, 5], Precision::Tf32));
    assert!(!has_mma(64, [3, 10], Precision::Tf32));
}

#[test]
fn one_tap_has_kernels_of_its_own() {
    let of = |batch, sm| {
        let shape = Shape::new(512, [28, 28], 128, [1, 1]).batch(batch);
        choose(&Problem { sm, ..Problem::new(shape) })[0].algorithm
    };
    assert_eq!(of(1, 90), Algorithm::PointwiseTile { pixels: 32, filters: 32 });
    assert_eq!(of(16, 90), Algorithm::WgmmaPointwise { pixels: 128, filters: 128 });
    assert!(matches!(of(16, 80), Algorithm::PointwiseTile { .. }));
    let padded = Shape::new(512, [28, 28], 128, [1, 1]).padding([1, 1]);
    assert!(choose(&Problem::new(padded)).iter().all(|choice| !choice.entry.tile.scheme.is_pointwise()));
}

/// By times of an H100; the direct kernel, which was chosen for 32 filters once, takes 19 us where this takes 5.
#[test]
fn first_layers_have_small_tiles_for_one_image() {
    let first = |filters, taps: usize, stride, batch| {
        let shape = Shape::new(3, [224; 2], filters, [taps; 2]).padding([taps / 2; 2]);
        choose(&Problem::new(shape.strides([stride; 2]).batch(batch)))[0].algorithm
    };
    let few = |rows, filters| Algorithm::FewChannels { rows, filters };
    assert_eq!([32, 56].map(|filters| first(filters, 3, 2, 1)), [few(4, 32), few(2, 64)]);
    assert_eq!(first(64, 3, 1, 1), few(4, 64));
    assert_eq!([1, 16].map(|batch| first(64, 7, 2, batch)), [few(2, 64), few(8, 64)]);
    // In 16 bits other tensor cores multiply thirteen channels of padding.
    let shape = Shape::new(3, [224; 2], 64, [3; 2]).padding([1; 2]);
    for problem in [shape, shape.batch(16)].map(Problem::new) {
        let problem = Problem { value: ValueType::F16, layout: MapLayout::Nchw, ..problem };
        assert_eq!(choose(&problem)[0].algorithm, few(4, 64));
    }
}

/// By times of an H100, of 16-bit values with channels last.
#[test]
fn first_layers_of_16_bits_go_to_tensor_cores() {
    let first = |filters, taps: usize, stride, batch| {
        let shape = Shape::new(3, [224; 2], filters, [taps; 2]).padding([taps / 2; 2]);
        let problem = Problem::new(shape.strides([stride; 2]).batch(batch));
        choose(&Problem { value: ValueType::F16, ..problem })[0].algorithm
    };
    let few = |rows, filters| Algorithm::FewChannelsMma { rows, filters };
    assert_eq!([1, 4, 16].map(|batch| first(32, 3, 2, batch)), [few(4, 32), few(8, 32), few(8, 32)]);
    assert_eq!([1, 16].map(|batch| first(64, 3, 1, batch)), [few(8, 64); 2]);
    assert_eq!([1, 16].map(|batch| first(64, 7, 2, batch)), [few(8, 64); 2]);
    // Filters that are no whole eights, and other strides.
    assert!(!matches!(first(30, 3, 2, 1), Algorithm::FewChannelsMma { .. }));
    assert!(!matches!(first(64, 7, 1, 1), Algorithm::FewChannelsMma { .. }));
}

#[test]
fn images_with_channels_last_are_one_run_of_pixels_with_the_same_splits() {
    let shape = Shape::new(2048, [7, 7], 64, [1, 1]).batch(16);
    let cut = |layout| {
        let problem = Problem { layout, ..Problem::new(shape) };
        let choices = choose(&problem);
        let is_tile =
            |choice: &&Choice| choice.algorithm == Algorithm::PointwiseTile { pixels: 32, filters: 32 };
        problem.cut(CostModel::hopper(), choices.iter().find(is_tile).unwrap().entry)
    };
    let [first, last] = [MapLayout::Nchw, MapLayout::Nhwc].map(cut);
    assert_eq!([first.images, first.tiles], [16, 2]);
    assert_eq!([last.images, last.tiles], [1, 25]);
    assert_eq!(first.splits, last.splits);
    // Every other pixel is no run.
    let problem = Problem::new(shape.strides([2, 2]));
    assert_eq!(problem.joined(), problem.shape);
}

/// The kernel of panels with tiles of so many pixels and filters, if it can do the problem.
fn panels(problem: &Problem, pixels: u32, filters: u32) -> Option<Choice> {
    op::find(problem, Algorithm::WgmmaPanels { pixels, filters })
}

#[test]
fn panels_are_for_sixteen_bits_with_channels_last_in_eights() {
    let usual = Problem { value: ValueType::F16, ..Problem::new(Shape::new(64, [14, 14], 128, [3, 3])) };
    let can = |problem: Problem| panels(&problem, 128, 128).is_some();
    let of = |shape| can(Problem { shape, ..usual });
    assert!(can(usual) && can(Problem { value: ValueType::Bf16, vector: 1, ..usual }));
    assert!(!can(Problem { value: ValueType::F32, ..usual }));
    assert!(!can(Problem { layout: MapLayout::Nchw, ..usual }));
    assert!(!can(Problem { precision: Precision::Fma, ..usual }) && !can(Problem { sm: 80, ..usual }));
    assert!(of(Shape { channels: 72, ..usual.shape }) && !of(Shape { channels: 68, ..usual.shape }));
    assert!(of(Shape { filters: 8, ..usual.shape }) && !of(Shape { filters: 12, ..usual.shape }));
    assert!(of(Shape::new(64, [14, 14], 128, [4, 8])) && !of(Shape::new(64, [14, 14], 128, [3, 11])));
    assert!(of(Shape::new(64, [4095, 4096], 64, [1, 1])) && !of(Shape::new(64, [4097, 4096], 64, [1, 1])));
    assert!(!of(Shape::depthwise(64, [14, 14], [3, 3])));
    // A row has 2³⁰ bytes: so many of padding cannot be counted.
    let tall = Shape::new(64, [1, 1 << 23], 8, [5, 1]);
    assert!(of(Shape::new(64, [1, 1 << 23], 8, [1, 1])) && !of(tall.padding([4, 0])));
}

#[test]
fn blocks_share_the_tiles_of_panels() {
    // Five images of 49 pixels, and 18 steps: two chunks of channels at nine taps.
    let shape = Shape::new(72, [7, 7], 136, [3, 3]).padding([1, 1]).batch(5);
    let problem = Problem { value: ValueType::F16, ..Problem::new(shape) };
    assert_eq!(problem.panel_steps(), 18);
    let cut = |splits| {
        let problem = Problem { splits: Some(splits), ..problem };
        let cut = problem.cut(CostModel::hopper(), panels(&problem, 128, 128).unwrap().entry);
        (cut.images, cut.tiles, cut.groups, cut.splits)
    };
    // Of 18 steps, three in each of six splits leave none for a seventh.
    assert_eq!([cut(1), cut(4), cut(7), cut(100)].map(|cut| cut.3), [1, 4, 6, 18]);
    assert_eq!(cut(1), (1, 2, 2, 1));
    let blocks =
        |tiles, columns| problem.panel_blocks(panels(&problem, 256, 128).unwrap().entry, tiles, columns);
    // All at once; three each; two each in two waves, as three or four each would be two waves, too.
    assert_eq!([blocks(10, 2), blocks(132, 3), blocks(66, 8), blocks(1, 1000)], [10, 44, 33, 1]);
}

#[test]
fn any_shape_has_a_kernel() {
    let taps = [[1, 1], [3, 3], [2, 5], [7, 7]];
    for (taps, (sm, strides)) in
        taps.into_iter().zip([(70, [1, 1]), (90, [2, 2]), (90, [1, 3]), (80, [1, 1])])
    {
        let problem = Problem { sm, ..Problem::new(Shape::new(3, [9, 8], 5, taps).strides(strides)) };
        assert!(!choose(&problem).is_empty());
        for choice in choose(&problem) {
            assert_eq!(op::find(&problem, choice.algorithm), Some(choice));
            assert!(choice.cost.is_finite());
        }
    }
}

#[test]
fn long_sums_are_the_warpgroups_where_there_are_any() {
    let best = |sm, batch| {
        let shape = Shape { batch, ..layer(512, 28, 512).shape };
        choose(&Problem { sm, ..Problem::new(shape) })[0].algorithm
    };
    assert_eq!(best(90, 16), Algorithm::WgmmaTile { tiles: 2, filters: 128 });
    assert!(matches!(best(80, 16), Algorithm::MmaTile { .. }));
    // A stride of two has more positions, which the tile for them alone has room for.
    let strided = Problem::new(Shape::new(256, [56, 56], 256, [3, 3]).padding([1, 1]).strides([2, 2]));
    let legal = choose(&strided);
    let of_warpgroups = legal.iter().filter(|choice| matches!(choice.algorithm, Algorithm::WgmmaTile { .. }));
    let tiles: Vec<_> = of_warpgroups.map(|choice| choice.algorithm).collect();
    assert_eq!(tiles.len(), 2, "{tiles:?}");
    assert!(tiles.contains(&Algorithm::WgmmaTile { tiles: 1, filters: 64 }));
}

#[test]
fn splits_that_are_given_are_kept_where_there_are_channels() {
    let of = |splits| {
        let problem = Problem { splits: Some(splits), ..layer(64, 14, 64) };
        let choices = choose(&problem);
        let mut tiles = choices.iter().filter(|choice| matches!(choice.algorithm, Algorithm::MmaTile { .. }));
        problem.cut(CostModel::hopper(), tiles.next().unwrap().entry).splits
    };
    assert_eq!([of(1), of(2), of(4), of(1000)], [1, 2, 4, 4]);
}

#[test]
fn cudnn_is_taken_where_it_is_asked_for_and_never_chosen() {
    let usual = layer(64, 56, 64);
    let depthwise = Problem::new(Shape::depthwise(32, [28; 2], [3, 3]).padding([1, 1]));
    for problem in [usual, depthwise, Problem { value: ValueType::F16, layout: MapLayout::Nchw, ..usual }] {
        assert!(choose(&problem).iter().all(|choice| choice.algorithm != Algorithm::CuDnn));
        let asked = op::find(&problem, Algorithm::CuDnn).unwrap();
        assert_eq!(asked.entry.name, format!("conv_{}_finish", problem.value));
        assert_eq!(problem.cut(CostModel::hopper(), asked.entry).splits, 1);
        // 16 bytes are as many elements as the type says.
        let aligned = 16 / problem.value.bytes();
        let is_able = |vector| op::find(&Problem { vector, ..problem }, Algorithm::CuDnn).is_some();
        assert_eq!((is_able(aligned), is_able(aligned / 2)), (true, false));
    }
}
