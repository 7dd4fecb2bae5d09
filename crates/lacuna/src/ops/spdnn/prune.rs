//! After which layers the rows that are alive are listed anew.

/// Layers between two lists are this part of those before: rows die fast at first, and hardly at all later, and a list takes as
/// long as a small layer.
const PART: usize = 4;

/// For each layer, whether rows are listed after it, of layers of which each does or does not keep zeros.
///
/// Rows may be left out where all later layers keep zeros. After the last layer they are listed always: these are the categories.
///
/// Layers that are launched together list rows after as many layers as there were before: what they lose meanwhile is less than two
/// launches.
pub(super) fn schedule(prune: bool, keeps_zero: &[bool], is_fused: impl Fn(usize) -> bool) -> Vec<bool> {
    let last = keeps_zero.len().saturating_sub(1);
    let mut lists = vec![false; keeps_zero.len()];
    // The first layer after which all others keep zeros.
    let first = keeps_zero.iter().rposition(|&keeps| !keeps).unwrap_or(0);
    let mut layer = first;
    while prune && layer < last {
        let before = layer - first;
        if !is_fused(layer) {
            lists[layer] = true;
            layer += (before / PART).max(1);
        } else if before == 0 {
            // The first layer alone is not worth a launch.
            layer += 1;
        } else {
            lists[layer] = true;
            layer += before + 1;
        }
    }
    if let Some(last) = lists.last_mut() {
        *last = true;
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(prune: bool, keeps_zero: &[bool]) -> Vec<usize> {
        let lists = schedule(prune, keeps_zero, |_| false);
        (0..lists.len()).filter(|&layer| lists[layer]).collect()
    }

    #[test]
    fn lists_come_less_often_the_deeper_the_network() {
        let first = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 41, 51, 63, 78, 97, 119];
        assert_eq!(listed(true, &[true; 120]), first);
        assert_eq!(listed(false, &[true; 120]), [119]);
        assert_eq!(listed(true, &[]), [0; 0]);
        assert_eq!(listed(true, &[true]), [0]);
    }

    #[test]
    fn fused_layers_list_after_as_many_as_before() {
        let lists = schedule(true, &[true; 120], |_| true);
        let listed: Vec<usize> = (0..120).filter(|&layer| lists[layer]).collect();
        assert_eq!(listed, [1, 3, 7, 15, 31, 63, 119]);
    }

    #[test]
    fn rows_are_kept_while_a_layer_makes_something_of_zeros() {
        // The rows that are zero after layer 2 become something in layer 3, and may stay zero after that.
        assert_eq!(listed(true, &[true, true, true, false, true, true]), [3, 4, 5]);
        assert_eq!(listed(true, &[true, true, true, true, true, false]), [5]);
    }
}
