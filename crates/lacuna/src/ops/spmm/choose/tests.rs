use lacuna_kernels::Arithmetic;

use super::*;
use crate::LONG_ROWS;
use crate::op::find;
use crate::ops::spmm::MEDIUM_ROWS;

pub(in super::super) fn problem(rows: usize, nnz: usize, n: usize, vector: u32) -> Problem {
    Problem { vector, ..Problem::new(rows, 2048, nnz, n) }
}

fn best(rows: usize, nnz: usize, n: usize, vector: u32) -> Choice {
    choose(&problem(rows, nnz, n, vector))[0]
}

fn scheme(choice: &Choice) -> (u32, u32) {
    match choice.entry.tile.scheme {
        Scheme::RowSplit { lanes, split, .. } => (lanes, split),
        other => panic!("{other:?}"),
    }
}

#[test]
fn wide_problems_use_whole_warps_a_row() {
    let problem = Problem { precision: Precision::Fma, ..problem(8192, 8192 * 512, 128, 4) };
    let choice = choose(&problem)[0];
    assert_eq!((choice.entry.tile.vector, scheme(&choice)), (4, (32, 1)));
}

#[test]
fn long_rows_use_tensor_cores_where_few_are_zero() {
    let at = |nnz: usize| choose(&problem(8192, 8192 * nnz, 128, 4))[0].algorithm;
    assert!(matches!(at(614), Algorithm::MmaTile { .. }));
    assert!(matches!(at(LONG_ROWS), Algorithm::RowSplit { .. } | Algorithm::Persistent { .. }));
}

#[test]
fn few_columns_share_a_row_among_subwarps() {
    let choice = best(1024, 1024 * 102, 1, 1);
    assert_eq!(scheme(&choice), (1, 32));
    let choice = best(1024, 1024 * 307, 32, 4);
    assert!(scheme(&choice).1 >= 4, "{choice:?}");
}

#[test]
fn many_tiles_of_columns_ask_for_large_blocks() {
    let problem = Problem { precision: Precision::Fma, ..problem(512, 512 * 205, 1568, 4) };
    let choice = choose(&problem)[0];
    assert_eq!((scheme(&choice).0, choice.entry.threads), (32, 1024));
}

#[test]
fn one_long_row_is_shared_among_subwarps() {
    let even = Problem { cols: 20_000, longest_row: 6, ..problem(20_000, 100_000, 32, 4) };
    // In pieces it would be many rows.
    let uneven = Problem { longest_row: 6400, longest_piece: Some(usize::MAX), ..even };
    let [even, uneven] = [even, uneven].map(|problem| choose(&problem)[0]);
    // A hybrid kernel gives each subwarp a short row of its own.
    let is_whole = scheme(&even).1 == 1 || matches!(even.algorithm, Algorithm::Hybrid { .. });
    assert!(is_whole && scheme(&uneven).1 >= 4, "{even:?} {uneven:?}");
}

#[test]
fn only_legal_vectors_are_offered() {
    for vector in [1, 2, 4] {
        let choices = choose(&problem(64, 640, 64, vector));
        assert!(choices.iter().all(|choice| choice.entry.tile.vector <= vector));
        assert!(choices.iter().any(|choice| choice.entry.tile.vector == vector));
    }
}

#[test]
fn each_type_has_kernels_for_every_n() {
    for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
        for index in [IndexType::U32, IndexType::U16] {
            for n in 1..20 {
                let problem = Problem { value, index, ..problem(64, 640, n, 8) };
                let choices = choose(&problem);
                let vectors = |choice: &Choice| n.is_multiple_of(choice.entry.tile.vector as usize);
                assert!(!choices.is_empty() && choices.iter().all(vectors), "{value} {index} {n}");
                let types = |choice: &Choice| {
                    // Tile kernels read bitmasks in place of indices.
                    choice.entry.tile.value == value
                        && (is_by_tiles(&choice.entry.tile) || choice.entry.tile.index == index)
                };
                assert!(choices.iter().all(types), "{value} {index} {n}");
            }
        }
    }
}

#[test]
fn columns_are_staged_in_16_bits_where_k_allows_and_each_algorithm_is_one_kernel() {
    for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
        for (cols, index, stage) in [
            (65_535, IndexType::U32, IndexType::U16),
            (65_535, IndexType::U16, IndexType::U16),
            (65_536, IndexType::U32, IndexType::U32),
            (u32::MAX as usize, IndexType::U32, IndexType::U32),
        ] {
            for n in [1, 2, 4, 8, 64] {
                let choices = choose(&Problem { value, cols, index, ..problem(64, 640, n, 8) });
                let staged = |choice: &Choice| match choice.entry.tile.scheme {
                    Scheme::RowSplit { stage, .. } => Some(stage),
                    _ => None,
                };
                assert!(choices.iter().filter_map(staged).all(|staged| staged == stage), "{cols} {value}");
                for (at, choice) in choices.iter().enumerate() {
                    let others = &choices[at + 1..];
                    assert!(others.iter().all(|other| other.algorithm != choice.algorithm), "{choice:?}");
                }
            }
        }
    }
}

#[test]
fn kernels_of_problems_with_long_rows_have_a_register_left_for_pieces() {
    let skewed = Problem { longest_row: 5000, ..problem(1000, 10_000, 64, 8) };
    for n in [1, 2, 4, 64] {
        let by_rows = |problem: &Problem| -> Vec<Choice> {
            let choices = choose(&Problem { n, ..*problem }).into_iter();
            choices.filter(|choice| matches!(choice.algorithm, Algorithm::RowSplit { .. })).collect()
        };
        let is_narrow = |choice: &Choice| {
            matches!(choice.entry.tile.scheme, Scheme::RowSplit { stage: IndexType::U16, .. })
        };
        let may_be_cut =
            |choice: &Choice| matches!(choice.entry.tile.scheme, Scheme::RowSplit { pieces: true, .. });
        let choices = by_rows(&skewed);
        assert!(choices.iter().all(may_be_cut) && choices.iter().any(is_narrow), "{n}");
        // Each shape is still there, once.
        let whole = by_rows(&Problem { longest_piece: Some(usize::MAX), ..skewed });
        assert!(whole.iter().all(is_narrow));
        assert_eq!(choices.len(), whole.len());
        assert!(whole.iter().all(|whole| choices.iter().any(|choice| choice.algorithm == whole.algorithm)));
        // 16-bit indices have no kernels that stage 32.
        assert!(by_rows(&Problem { index: IndexType::U16, ..skewed }).iter().all(is_narrow));
    }
}

#[test]
fn persistent_kernels_are_taken_where_they_were_faster() {
    for (rows, cols, n) in [(4096, 1024, 128), (12_288, 4096, 32)] {
        let nnz = rows * cols / 10;
        let problem = Problem { precision: Precision::Fma, cols, ..problem(rows, nnz, n, 4) };
        let algorithm = choose(&problem)[0].algorithm;
        assert!(matches!(algorithm, Algorithm::Persistent { .. }), "{rows} {cols} {n}: {algorithm:?}");
        // Of 16-bit values there are only those for uneven rows.
        let halves = choose(&Problem { value: ValueType::F16, vector: 8, ..problem });
        assert!(halves.iter().all(|choice| !matches!(choice.algorithm, Algorithm::Persistent { .. })));
    }
}

#[test]
fn kernels_for_measurements_are_found_and_never_offered() {
    let problem = problem(64, 640, 64, 4);
    let (vector, warps) = (4, 8);
    for idea in [Idea::ResidueHandling, Idea::IndexPreScaling] {
        for (lanes, split) in [(32, 1), (8, 4)] {
            let wanted = Algorithm::Ablation { idea, vector, lanes, split, warps };
            let whole = Algorithm::RowSplit { vector, lanes, split, warps };
            let [found, whole] = [wanted, whole].map(|wanted| find(&problem, wanted).unwrap());
            assert!(
                found.entry.name.starts_with(whole.entry.name) && found.entry.name != whole.entry.name,
                "{found:?}"
            );
            assert!(choose(&problem).iter().all(|choice| choice.entry.name != found.entry.name));
            assert_eq!(find(&Problem { n: 62, ..problem }, wanted), None);
            let wide = find(&Problem { cols: 65_536, ..problem }, wanted);
            assert_eq!(wide.is_some(), idea == Idea::IndexPreScaling);
        }
    }
    assert_eq!(find(&problem, Algorithm::Auto), Some(choose(&problem)[0]));
}

/// Where narrower tiles of columns were measured to be faster: `f32`, power laws of 16 and 32 nonzeros a row, on an H100.
#[test]
fn tiles_of_columns_stay_in_l2_where_they_can() {
    let lanes = |nodes: usize, n: usize| {
        let nnz = nodes * 16;
        let lengths = RowLengths::even(nodes, nnz);
        let graph = Problem { cols: nodes, lengths, ..problem(nodes, nnz, n, 8) };
        scheme(&choose(&graph)[0]).0
    };
    assert_eq!([lanes(100_000, 256), lanes(250_000, 64), lanes(250_000, 256)], [16, 8, 8]);
    // Where L2 holds none of them, wide tiles are faster.
    assert!(lanes(1_000_000, 64) >= 16 && lanes(1_000_000, 256) >= 16);
    // A line of two rows is there for both halves of them.
    let thin = Problem { cols: 1_000_000, ..problem(1_000_000, 16_000_000, 16, 8) };
    assert!(choose(&thin)[0].entry.tile.block_columns >= 16);
}

#[test]
fn halves_take_sixteen_bytes_a_lane() {
    // By rows; tiles take them, too, but not only.
    let (value, precision) = (ValueType::F16, Precision::Fma);
    let choice = choose(&Problem { value, precision, ..problem(8192, 8192 * 512, 256, 8) })[0];
    assert_eq!(choice.entry.tile.vector, 8);
}

/// The arithmetics of the kernels on tensor cores that are offered: those of tiles, and those of warpgroups.
fn arithmetics(problem: &Problem) -> [Vec<Arithmetic>; 2] {
    let mut found = [vec![], vec![]];
    for scheme in choose(problem).into_iter().map(|choice| choice.entry.tile.scheme) {
        if let Some(arithmetic) = scheme.arithmetic() {
            let found = &mut found[usize::from(matches!(scheme, Scheme::WgmmaTile { .. }))];
            if !found.contains(&arithmetic) {
                found.push(arithmetic);
            }
        }
    }
    found
}

/// Whether kernels on tensor cores are offered.
fn has_tensor(problem: &Problem) -> bool {
    choose(problem).iter().any(|choice| is_by_tiles(&choice.entry.tile))
}

#[test]
fn precision_decides_which_tiles_are_offered() {
    let long = problem(64, 64 * LONG_ROWS, 64, 8);
    let short = Problem { nnz: long.nnz - 1, ..long };
    let (none, halves) = ([None; 2], [Some(Arithmetic::Half); 2]);
    let (split, tf32) = ([Some(Arithmetic::Split), None], [Some(Arithmetic::Tf32), None]);
    for (value, precision, of_long, of_short) in [
        (ValueType::F32, Precision::Single, split, none),
        (ValueType::F32, Precision::Tf32, tf32, tf32),
        (ValueType::F32, Precision::Fma, none, none),
        (ValueType::F16, Precision::Single, halves, halves),
        (ValueType::F16, Precision::Tf32, halves, halves),
        (ValueType::Bf16, Precision::Single, halves, halves),
        (ValueType::Bf16, Precision::Fma, none, none),
    ] {
        for (problem, expected) in [(long, of_long), (short, of_short)] {
            for index in [IndexType::U32, IndexType::U16] {
                let problem = Problem { value, precision, index, ..problem };
                assert_eq!(arithmetics(&problem), expected.map(Vec::from_iter), "{problem:?}");
                // Warpgroups' products are those of compute capability 9.0 alone.
                for sm in [80, 89, 100] {
                    let expected = [Vec::from_iter(expected[0]), vec![]];
                    assert_eq!(arithmetics(&Problem { sm, ..problem }), expected, "{problem:?} {sm}");
                }
            }
        }
    }
}

#[test]
fn prepacked_singles_are_multiplied_as_exactly_as_is_asked_for() {
    let medium = Problem { prepacked: true, ..problem(8192, 8192 * MEDIUM_ROWS, 128, 8) };
    let of_packs = |problem: &Problem| -> Vec<Arithmetic> {
        let schemes = choose(problem).into_iter().map(|choice| choice.entry.tile.scheme);
        let mut found: Vec<_> = schemes
            .filter(|scheme| matches!(scheme, Scheme::PrepackedTile { .. }))
            .filter_map(Scheme::arithmetic)
            .collect();
        found.dedup();
        found
    };
    for (precision, expected) in [
        (Precision::Single, vec![Arithmetic::SplitTf32]),
        (Precision::Tf32, vec![Arithmetic::Tf32]),
        (Precision::Fma, vec![]),
    ] {
        assert_eq!(of_packs(&Problem { precision, ..medium }), expected);
        assert_eq!(of_packs(&Problem { precision, prepacked: false, ..medium }), []);
        assert_eq!(of_packs(&Problem { precision, sm: 80, ..medium }), []);
    }
    assert_eq!(of_packs(&Problem { nnz: medium.nnz - 1, ..medium }), []);
    // As many as TF32 alone needs.
    let short = Problem { nnz: medium.nnz - 1, precision: Precision::Tf32, ..medium };
    assert_eq!(of_packs(&short), [Arithmetic::Tf32]);
}

#[test]
fn tiles_and_warpgroups_of_one_size_are_told_apart() {
    let problem = Problem { value: ValueType::F16, ..problem(8192, 8192 * 512, 128, 8) };
    let (rows, columns, slices) = (64, 128, 1);
    let tiles = find(&problem, Algorithm::MmaTile { rows, columns, slices }).unwrap();
    let groups =
        find(&problem, Algorithm::WgmmaTile { rows, columns, columns_per_prefetch: 2, cluster: 1 }).unwrap();
    assert_eq!((tiles.entry.name, groups.entry.name), ("spmm_f16_mma_64x128_k1", "spmm_f16_wgmma_64x128_p2"));
    assert_eq!(find(&Problem { sm: 100, ..problem }, groups.algorithm), None);
}

#[test]
fn tiles_want_rows_of_whole_copies_and_a_gpu_that_has_them() {
    let usual = Problem { precision: Precision::Tf32, ..problem(64, 640, 64, 4) };
    assert!(has_tensor(&usual));
    // By warpgroups, rows of 8 bytes are enough.
    let halves = Problem { value: ValueType::F16, n: 68, ..usual };
    assert!(has_tensor(&halves));
    let none = [
        Problem { vector: 2, ..usual },
        Problem { n: 66, ..usual },
        Problem { sm: 75, ..usual },
        Problem { vector: 2, ..halves },
        Problem { n: 66, ..halves },
        Problem { sm: 80, ..halves },
    ];
    for problem in none {
        assert!(!has_tensor(&problem), "{problem:?}");
        assert!(!choose(&problem).is_empty());
    }
}

#[test]
fn kernels_fit_into_the_shared_memory_of_a_block() {
    for precision in [Precision::Single, Precision::Tf32] {
        for value in [ValueType::F32, ValueType::F16] {
            let large = Problem { value, precision, ..problem(512, 512 * LONG_ROWS, 128, 8) };
            for bytes in [48 * 1024, 99 * 1024, 163 * 1024, 227 * 1024] {
                let choices = choose(&Problem { block_shared_bytes: bytes, ..large });
                assert!(!choices.is_empty());
                assert!(choices.iter().all(|choice| choice.entry.shared_bytes <= bytes), "{bytes}");
            }
            // Where there is less, there are fewer to choose from.
            let count = |bytes| choose(&Problem { block_shared_bytes: bytes, ..large }).len();
            assert!(count(48 * 1024) < count(99 * 1024) && count(99 * 1024) <= count(227 * 1024));
        }
    }
}

#[test]
fn sparse_patterns_whose_bitmasks_are_large_get_no_tiles() {
    // 8 bytes for each of 31,250 chunks of a million rows, and ten nonzeros a row.
    let graph = Problem { cols: 1_000_000, value: ValueType::F16, ..problem(1_000_000, 10_000_000, 64, 8) };
    assert!(!has_tensor(&graph));
    assert!(!choose(&graph).is_empty());
    let layer = Problem { cols: 4096, ..graph };
    assert!(has_tensor(&Problem { nnz: 1_000_000 * 400, ..layer }));
    // A row of nonzeros far apart is small enough to have them.
    let row = Problem { rows: 3, cols: 100_000, nnz: 30, ..graph };
    assert!(has_tensor(&row));
}

#[test]
fn a_batch_is_more_work() {
    let one = problem(64, 64 * 100, 64, 4);
    let many = Problem { batch: 64, ..one };
    // One small product waits for memory; many fill the GPU and need fewer subwarps.
    assert!(scheme(&choose(&one)[0]).1 > scheme(&choose(&many)[0]).1);
    assert!(choose(&many)[0].cost > choose(&one)[0].cost);
}

#[test]
fn costs_are_numbers_at_the_limits() {
    for rows in [0, 1, u32::MAX as usize] {
        for nnz in [0, u32::MAX as usize - 5000] {
            for (cols, n) in [(0, 0), (u32::MAX as usize, 0), (0, 1), (1, (1 << 30) - 1)] {
                let choices = choose(&Problem { cols, multiprocessors: 1, ..problem(rows, nnz, n, 1) });
                assert!(choices.iter().all(|choice| choice.cost.is_finite()), "{rows} {nnz} {n}");
            }
        }
    }
}
#[test]
fn packs_are_for_prepacked_matrices_alone() {
    let problem = Problem { value: ValueType::F16, prepacked: true, ..problem(8192, 8192 * 205, 32, 8) };
    let packed = choose(&problem)[0];
    assert_eq!(packed.algorithm, Algorithm::PrepackedTile { rows: 64, columns: 32, cluster: 1 });
    for other in [
        Problem { prepacked: false, ..problem },
        Problem { precision: Precision::Fma, ..problem },
        Problem { sm: 80, ..problem },
        Problem { vector: 2, ..problem },
    ] {
        assert!(find(&other, packed.algorithm).is_none(), "{other:?}");
        assert!(!choose(&other).iter().any(|choice| is_prepacked(&choice.entry.tile)), "{other:?}");
    }
}

#[test]
fn few_tiles_are_shared() {
    let few = Problem { value: ValueType::F16, cols: 4096, ..problem(4096, 4096 * 410, 32, 8) };
    for prepacked in [false, true] {
        let sharing = |rows| {
            let choice = choose(&Problem { rows, nnz: rows * 410, prepacked, ..few })[0];
            match choice.entry.tile.scheme {
                Scheme::WgmmaTile { blocks, .. } | Scheme::PrepackedTile { blocks, .. } => blocks,
                other => panic!("{other:?}"),
            }
        };
        // 64 tiles for 132 multiprocessors, and 128.
        assert_eq!([4096, 8192].map(sharing), [2, 1], "prepacked: {prepacked}");
    }
}

#[test]
fn rows_of_three_times_a_power_of_two_have_taller_tiles() {
    let rows_of = |rows: usize, a_row: usize| {
        let problem = problem(rows, rows * a_row, 128, 8);
        let problem = Problem { value: ValueType::F16, prepacked: true, cols: 4096, ..problem };
        choose(&problem)[0].entry.tile.block_rows
    };
    // 90 % zeros: tiles of 128 rows are 96 for 132 multiprocessors. Of 16384 rows they are 128, and at 80 % more comes late.
    assert_eq!([rows_of(12288, 410), rows_of(16384, 410), rows_of(12288, 820)], [192, 128, 128]);
}
