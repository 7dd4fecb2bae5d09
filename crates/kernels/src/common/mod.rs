//! What several operations use. It knows none of them.
mod divisor;
mod exchange;
mod half;
mod map;
mod operand;
mod products;
mod reduce;
mod reduce_row;
mod row_mask;
mod row_record;
mod split_rows;
mod stride;
mod types;
mod vector;

pub use divisor::Divisor;
pub(crate) use exchange::{swap, transpose_words};
pub use half::HalfValue;
pub use map::Map;
pub use operand::{Half, Operand, Single};
pub use products::{Arithmetic, Products, Split, SplitBf16, SplitTf32, Tf32};
pub(crate) use products::{bf16_parts, nearest_tf32, pack, pack_lo, tf32_rest};
pub(crate) use reduce::{
    add_across_lanes, add_all_across_lanes, are_finite, inclusive_sum, reduce, reduce_each, subwarp_mask,
    sums_of_block, transpose_sums,
};
pub(crate) use reduce_row::{reduce_row, row_shared_bytes};
pub use row_mask::RowMask;
pub use row_record::{ALIGNED, PADDING, RowRecord};
pub(crate) use split_rows::{PASSES, Rows, SPLIT_ROWS, SplitRows};
pub(crate) use stride::strided;
pub use types::{DeviceIndex, DeviceValue, IndexType, ValueType};
pub(crate) use vector::{
    RawVector, load_raw, load_raw_mut, round_into, store_raw, store_words, unpack, unpack_into, widened, word,
};
