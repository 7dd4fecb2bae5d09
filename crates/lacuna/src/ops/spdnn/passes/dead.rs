//! Neurons that no later layer reads.
use super::super::Layer;
use super::{Passed, select};
use crate::Result;

/// Leaves out the outputs that nobody reads, from the last layer to the first: what only they read is then read by nobody.
pub(super) fn leave_out(layers: &mut [Layer], passed: &mut [Passed]) -> Result<()> {
    for second in (1..layers.len()).rev() {
        let mut is_read = vec![false; layers[second].inputs()];
        for &input in layers[second].weights().col_indices() {
            is_read[input as usize] = true;
        }
        let kept: Vec<u32> = (0..is_read.len() as u32).filter(|&input| is_read[input as usize]).collect();
        passed[second - 1].dead = is_read.len() - kept.len();
        if kept.len() < is_read.len() {
            layers[second] = select::inputs(&layers[second], &kept)?;
            layers[second - 1] = select::outputs(&layers[second - 1], &kept)?;
        }
    }
    Ok(())
}
