//! Tables of every width, with strides, and results in both layouts.
use lacuna::nhot;

use super::conform::conform_other_types;
use super::{Problem, conform};
use crate::{Case, Effort};

const WIDTHS: [usize; 12] = [0, 1, 3, 4, 6, 31, 32, 33, 100, 128, 512, 513];

pub(super) fn cases() -> Vec<Case> {
    let widths = WIDTHS.into_iter().map(|columns| {
        let check = move |cx: &crate::Context<'_>| {
            conform(cx, &Problem::of_lengths(&[2, 0, 11, 1], 12, columns, cx.seed).weighted(cx.seed))
        };
        Case::new(format!("nhot/columns/{columns}"), "a table of so many columns", check)
    });
    let other_types = [31, 100, 128].into_iter().map(|columns| {
        let check = move |cx: &crate::Context<'_>| {
            conform_other_types(cx, &Problem::of_lengths(&[2, 0, 11, 1], 12, columns, cx.seed))
        };
        Case::new(format!("nhot/columns/types_{columns}"), "bf16, and f16 with indices of 64 bits", check)
    });
    let transposed = [1, 7, 40, 128].into_iter().map(|columns| {
        let check = move |cx: &crate::Context<'_>| {
            let problem = Problem::of_lengths(&[2, 0, 11, 1, 0, 0, 3, 1, 2], 12, columns, cx.seed);
            let options = |options: lacuna::nhot::Options| {
                options.layout(nhot::Layout::Transposed).mode(nhot::Mode::Mean)
            };
            conform(cx, &problem.weighted(cx.seed).with(options))
        };
        Case::new(format!("nhot/columns/transposed_{columns}"), "a row a column", check)
    });
    let strides = [(8, 16, 24), (8, 9, 11), (30, 36, 30), (30, 30, 34), (5, 8, 8)];
    let strided = strides.into_iter().map(|(columns, table, out)| {
        let check = move |cx: &crate::Context<'_>| {
            let problem = Problem::of_lengths(&[2, 0, 11, 1], 12, columns, cx.seed);
            conform(cx, &problem.with(|options| options.table_stride(table).out_stride(out)))
        };
        let name = format!("nhot/columns/strides_{columns}_{table}_{out}");
        Case::new(name, "columns, and elements from row to row of table and result", check)
    });
    let strided_and_turned =
        Case::new("nhot/columns/strides_transposed", "a transposed result with gaps", |cx| {
            let problem = Problem::of_lengths(&[2, 0, 11, 1], 12, 40, cx.seed);
            let options = |options: lacuna::nhot::Options| {
                options.layout(nhot::Layout::Transposed).table_stride(44).out_stride(7)
            };
            conform(cx, &problem.with(options))
        });
    let wide = Case::new("nhot/columns/wide", "4100 columns", |cx| {
        conform(cx, &Problem::of_lengths(&[2, 33], 12, 4100, cx.seed))
    });
    let wide = wide.effort(Effort::Gpu);
    widths.chain(other_types).chain(transposed).chain(strided).chain([strided_and_turned, wide]).collect()
}
