//! Patterns by their rows.
use anyhow::Result;
use lacuna::matrix::Pattern;

/// The pattern in which each row has these columns, in any order.
///
/// # Errors
/// If a column is not below `cols`, or stands twice in a row.
pub fn of_rows(cols: usize, rows: &[Vec<u32>]) -> Result<Pattern> {
    let mut offsets = vec![0];
    let mut columns = Vec::new();
    for row in rows {
        columns.extend(row);
        offsets.push(u32::try_from(columns.len())?);
    }
    Ok(Pattern::from_unsorted(rows.len(), cols, offsets, columns)?)
}

/// `len` columns spread evenly over `cols`, the last of them the last.
pub fn spread(len: usize, cols: usize) -> Vec<u32> {
    (1..=len).map(|i| (i * cols / len - 1) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_columns_in_order() {
        let pattern = of_rows(4, &[vec![3, 1], vec![], spread(2, 4)]).unwrap();
        assert_eq!((pattern.row_offsets(), pattern.col_indices()), (&[0, 2, 2, 4][..], &[1, 3, 1, 3][..]));
        assert!(of_rows(4, &[vec![1, 1]]).is_err() && of_rows(4, &[vec![4]]).is_err());
    }
}
