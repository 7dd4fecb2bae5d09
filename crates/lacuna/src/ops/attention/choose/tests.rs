use super::*;

fn problem(dim: usize, vector: u32, value: ValueType, index: IndexType) -> Problem {
    Problem { vector, ..Problem::new([100, 100], 1000, dim, value, index) }
}

#[test]
fn the_smallest_that_holds_a_row_is_chosen() {
    let best = |dim, vector, value| choose(&problem(dim, vector, value, IndexType::U32))[0].entry.name;
    for (dim, entry) in [(32, "v4_l8_c1"), (40, "v4_l8_c2"), (64, "v4_l8_c2"), (128, "v4_l16_c2")] {
        assert_eq!(best(dim, 4, ValueType::F32), format!("attention_f32_row_{entry}"));
    }
    for (dim, entry) in [(32, "v8_l4_c1"), (64, "v8_l8_c1"), (128, "v8_l8_c2"), (256, "v8_l16_c2")] {
        assert_eq!(best(dim, 8, ValueType::Bf16), format!("attention_bf16_row_{entry}"));
    }
}

fn is_by_query_tiles(problem: &Problem) -> bool {
    choose(problem)[0].entry.tile.scheme == Scheme::QueryTile
}

#[test]
fn query_tiles_are_chosen_where_they_share_keys() {
    let best = |query_tile_entries| {
        let problem = Problem { query_tile_entries, ..problem(64, 4, ValueType::F32, IndexType::U32) };
        is_by_query_tiles(&problem)
    };
    assert_eq!(
        [None, Some(1000), Some(980), Some(900), Some(260)].map(best),
        [false, false, false, true, true]
    );
    let narrow = Problem { query_tile_entries: Some(570), ..problem(48, 4, ValueType::F32, IndexType::U32) };
    assert!(!is_by_query_tiles(&narrow), "rows that do not fill the lanes");
}

/// Tiles of a causal mask of so many tokens.
fn causal(tokens: usize) -> BlockCounts {
    let strips = tokens / 64;
    let tiling = |groups: usize| {
        let tiles = strips.div_ceil(groups);
        TilingCounts {
            tiles,
            entries: (1..=tiles).map(|tile| (tile * groups).min(strips)).sum(),
            longest: strips,
        }
    };
    BlockCounts { tilings: [1, 2, 3].map(tiling) }
}

/// Causal masks of so many tokens, 8 heads of 64: tiles that took least on an H100.
#[test]
fn many_tokens_take_large_tiles() {
    let best = |tokens: usize| {
        let nnz = tokens * tokens / 2;
        let problem = Problem::new([tokens, tokens], nnz, 64, ValueType::F16, IndexType::U32);
        choose(&Problem { heads: 8, blocks: Some(causal(tokens)), ..problem })[0].entry.name
    };
    // Of 4,096 tokens both take as long, 61 and 63 us.
    assert_eq!([1024, 2048].map(best), ["attention_f16_wgmma_l32_g1"; 2]);
    assert_eq!(best(12_288), "attention_f16_wgmma_l32_g3");
}

/// A band of 256, 8 heads of 64: of 4,096 tokens large tiles are one and a third waves, and took 20 us where small ones took 18.
#[test]
fn tiles_that_are_alike_come_in_waves() {
    let best = |tokens: usize| {
        let strips = tokens / 64;
        let tiling = |groups: usize| {
            let tiles = strips.div_ceil(groups);
            TilingCounts { tiles, entries: tiles * (groups + 4), longest: groups + 4 }
        };
        let blocks = Some(BlockCounts { tilings: [1, 2, 3].map(tiling) });
        let problem = Problem::new([tokens, tokens], tokens * 256, 64, ValueType::F16, IndexType::U32);
        choose(&Problem { heads: 8, blocks, ..problem })[0].entry.name
    };
    assert_eq!([4096, 12_288].map(best), ["attention_f16_wgmma_l32_g1", "attention_f16_wgmma_l32_g3"]);
}

/// About the mask of SC 2020 of 1,024 tokens: 15 us by blocks, 45 by query tiles on an H100.
#[test]
fn few_tokens_take_blocks_too() {
    let tiling = |groups: usize| {
        let tiles = 16usize.div_ceil(groups);
        TilingCounts { tiles, entries: 16 * (tiles + 1) / 2, longest: 16 }
    };
    let blocks = BlockCounts { tilings: [1, 2, 3].map(tiling) };
    let problem = Problem::new([1024, 1024], 244_289, 64, ValueType::F16, IndexType::U32);
    let problem = Problem { heads: 8, blocks: Some(blocks), query_tile_entries: Some(71_000), ..problem };
    assert_eq!(choose(&problem)[0].entry.name, "attention_f16_wgmma_l32_g1");
}

/// Masks of SC 2020 in `f32`, 8 heads of 64, with about so many keys and entries of query tiles: on an H200 blocks take 21 us of 1,024 tokens and 801 of
/// 12,288, query tiles 45 and 1,148.
#[test]
fn f32_takes_blocks_where_they_are_faster() {
    let best = |tokens: usize, nnz: usize, entries: usize| {
        let problem = Problem::new([tokens, tokens], nnz, 64, ValueType::F32, IndexType::U32);
        let (blocks, query_tile_entries) = (Some(causal(tokens)), Some(entries));
        choose(&Problem { heads: 8, blocks, query_tile_entries, ..problem })[0].entry.name
    };
    assert_eq!(best(1024, 244_289, 71_000), "attention_f32_wgmma_l32_g1");
    assert_eq!(best(12_288, 6_730_000, 3_810_000), "attention_f32_wgmma_l32_g3");
    // 64 keys a query, and as many a block.
    assert_eq!(best(12_288, 800_000, 400_000), "attention_f32_query4_v4_l8_c2");
}

#[test]
fn blocks_of_few_keys_are_taken_key_by_key() {
    let best = |keys_of_a_block: usize| {
        let tiling = TilingCounts { tiles: 64, entries: 64 * 64, longest: 64 };
        let blocks = BlockCounts { tilings: [tiling; 3] };
        let nnz = keys_of_a_block * tiling.entries;
        let problem = Problem::new([4096, 4096], nnz, 64, ValueType::Bf16, IndexType::U32);
        choose(&Problem { heads: 64, blocks: Some(blocks), ..problem })[0].entry.tile.scheme
    };
    assert!(matches!(best(70), Scheme::Row { .. }));
    assert_eq!(best(500), Scheme::WgmmaTile);
}

#[test]
fn blocks_take_compute_capability_9_and_scales_above_0() {
    let able = Problem::new([64, 64], 100, 64, ValueType::F16, IndexType::U32);
    let is_legal = |problem: &Problem| {
        choose(problem).iter().any(|choice| choice.entry.tile.scheme == Scheme::WgmmaTile)
    };
    assert!(is_legal(&able));
    for other in [
        Problem { sm: 100, ..able },
        Problem { has_positive_scale: false, ..able },
        Problem { vector: 4, ..able },
        Problem { dim: 264, ..able },
        Problem { value: ValueType::F32, ..able },
        // More tiles of 192 than a grid has rows.
        Problem { queries: 192 * 65_535 + 1, ..able },
    ] {
        assert!(!is_legal(&other), "{other:?}");
    }
}

/// Other GPUs with tensor cores take full blocks by warps, and 12,288 causal tokens by tiles of 128 queries.
#[test]
fn other_gpus_take_blocks_by_warps() {
    let problem = Problem::new([12_288, 12_288], 12_288 * 6144, 64, ValueType::F16, IndexType::U32);
    let problem = Problem { heads: 8, blocks: Some(causal(12_288)), ..problem };
    let best = |sm| choose(&Problem { sm, ..problem })[0].entry.name;
    assert_eq!([80, 86, 89, 120].map(best), ["attention_f16_mma_l32_g2"; 4]);
    assert_eq!(best(90), "attention_f16_wgmma_l32_g3");
    assert_eq!(
        choose(&Problem { sm: 75, ..problem })[0].entry.tile.scheme,
        Scheme::Row { index: IndexType::U32 }
    );
}

#[test]
fn blocks_take_f32_where_parts_are_exact_enough() {
    let able = Problem::new([100, 100], 6400, 64, ValueType::F32, IndexType::U32);
    let is_legal = |problem: &Problem| {
        let takes = |sm, scheme| {
            choose(&Problem { sm, ..*problem }).iter().any(|choice| choice.entry.tile.scheme == scheme)
        };
        let by_warps = takes(80, Scheme::MmaTile);
        assert!(!takes(75, Scheme::MmaTile) && !takes(89, Scheme::WgmmaTile));
        assert_eq!(takes(90, Scheme::WgmmaTile), by_warps, "both take the same");
        by_warps
    };
    let at = |precision| Problem { precision, ..able };
    assert!(is_legal(&able) && is_legal(&Problem { dim: 128, ..able }));
    for other in [
        Problem { nnz: 6399, ..able },
        Problem { dim: 60, ..able },
        Problem { dim: 260, ..at(Precision::Tf32) },
        Problem { vector: 2, ..at(Precision::Tf32) },
        at(Precision::Fma),
    ] {
        assert!(!is_legal(&other), "{other:?}");
    }
    assert!(is_legal(&Problem { nnz: 1, dim: 4, ..at(Precision::Tf32) }));
}

#[test]
fn each_kernel_has_one_that_modifies_scores() {
    for entry in entries::attention() {
        let has_one = matches!(
            entry.tile.scheme,
            Scheme::Row { .. }
                | Scheme::QueryTile
                | Scheme::WgmmaTile
                | Scheme::MmaTile
                | Scheme::BackwardTile { .. }
                | Scheme::BackwardMmaTile { .. }
        );
        let suffix = if has_one { "_modified" } else { "" };
        assert_eq!(modifying(entry).name, format!("{}{suffix}", entry.name));
    }
}

#[test]
fn blocks_alone_take_no_other_kernel() {
    let of_pattern = Problem::new([64, 64], 100, 64, ValueType::F16, IndexType::U32);
    let legal = choose(&Problem { index: None, ..of_pattern });
    assert!(!legal.is_empty());
    let by_blocks = [Scheme::WgmmaTile, Scheme::MmaTile];
    assert!(legal.iter().all(|choice| by_blocks.contains(&choice.entry.tile.scheme)));
}

#[test]
fn every_dimension_has_a_kernel_at_every_alignment() {
    for value in [ValueType::F32, ValueType::F16, ValueType::Bf16] {
        for index in [IndexType::U32, IndexType::U16] {
            for (dim, vector) in (1..=256).flat_map(|dim| [1, 2, 4, 8].map(|vector| (dim, vector))) {
                let legal = choose(&problem(dim, vector, value, index));
                assert!(!legal.is_empty(), "{value} {index} {dim} {vector}");
                for choice in legal {
                    assert!(dim.is_multiple_of(choice.entry.tile.vector as usize));
                    assert!(choice.entry.tile.vector <= vector);
                }
            }
            assert!(choose(&problem(257, 8, value, index)).is_empty());
        }
    }
}

/// In `f32`, d = 64, 8 heads on an H200, causal masks of 4,096 tokens took 260 us by warps and 1,076 in fours; SC 2020's mask of 12,288 tokens
/// 1,499 and 1,144.
#[test]
fn full_blocks_of_f32_go_by_warps_and_scattered_keys_in_fours() {
    let best = |tokens: usize, nnz: usize, entries: usize| {
        let problem = Problem::new([tokens, tokens], nnz, 64, ValueType::F32, IndexType::U32);
        let blocks = Some(causal(tokens));
        let problem = Problem { heads: 8, sm: 80, blocks, query_tile_entries: Some(entries), ..problem };
        choose(&problem)[0].algorithm
    };
    let fours = |tokens: usize| tokens * tokens / 8;
    assert!(matches!(best(4096, 4096 * 2048, fours(4096)), Algorithm::MmaTile { queries: 128, .. }));
    // A band of 256 keys, and 300 more a query that its neighbours do not see.
    assert!(matches!(best(12_288, 12_288 * 557, 12_288 / 4 * 1463), Algorithm::QueryTile { .. }));
}

/// Of 12,288 tokens with 80 % of the blocks empty, at random, two groups of queries have nine tenths of the entries of one. They took
/// 589 us on an H100, 8 heads of 256, and one group 661. Of a causal mask of 4,096 tokens they took 181 and 309.
#[test]
fn wide_rows_share_copies_where_they_can() {
    let best = |tokens: usize, blocks: BlockCounts| {
        let problem =
            Problem::new([tokens, tokens], tokens * tokens / 10, 256, ValueType::F16, IndexType::U32);
        choose(&Problem { heads: 8, blocks: Some(blocks), ..problem })[0].entry.name
    };
    let sharing = |shared: usize| {
        let tiling = |groups: usize| TilingCounts {
            tiles: 192_usize.div_ceil(groups),
            entries: if groups == 1 { 3700 } else { shared },
            longest: 60,
        };
        BlockCounts { tilings: [1, 2, 3].map(tiling) }
    };
    assert_eq!(best(12_288, sharing(3330)), "attention_f16_wgmma_l128_g2");
    assert_eq!(best(12_288, sharing(3600)), "attention_f16_wgmma_l128_g1");
    assert_eq!(best(4096, causal(4096)), "attention_f16_wgmma_l128_g2");
}
