//! What the pictures of records have in common.
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

/// Pixels of a picture without its legend.
pub(crate) const WIDTH: u32 = 900;
/// The same, downwards.
pub(crate) const AXES: u32 = 480;
/// Pixels of the legend's lines, which stand below the axes.
pub(crate) const LEGEND_LINE: u32 = 24;
/// Lines of the axes: few, and faint.
pub(crate) const GRID: RGBColor = RGBColor(225, 225, 225);

/// What drawing comes to.
pub(crate) type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Powers of two inside a range that holds 1.
pub(crate) fn powers_of_two(range: &Range<f64>) -> Vec<f64> {
    let (from, to) = (range.start.log2().ceil() as i32, range.end.log2().floor() as i32);
    (from..=to).map(|exponent| f64::from(exponent).exp2()).collect()
}

/// Draws a line of text for each colour.
pub(crate) fn legend<'l>(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    lines: impl Iterator<Item = (&'l str, RGBColor)>,
) -> Drawn {
    for (line, (label, colour)) in lines.enumerate() {
        let y = (LEGEND_LINE * line as u32 + LEGEND_LINE / 2) as i32;
        area.draw(&Circle::new((70, y), 5, colour.filled()))?;
        area.draw(&Text::new(label, (84, y - 8), ("sans-serif", 16)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_at_one_and_few_others() {
        assert_eq!(powers_of_two(&(0.4..13.0)), [0.5, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!(powers_of_two(&(0.8..1.25)), [1.0]);
    }
}
