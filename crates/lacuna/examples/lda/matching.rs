//! Which topic that was found is which true one.

/// For `k` found and `k` true topics (words × topics both) the cosines of pairs, the most alike first: each time the most alike
/// of those that have no partner yet.
pub(crate) fn greedy_cosines(found: &[f32], wanted: &[f32], k: usize) -> Vec<f64> {
    let mut pairs: Vec<(f64, usize, usize)> = (0..k * k)
        .map(|pair| (pair / k, pair % k))
        .map(|(f, w)| (cosine(column(found, f, k), column(wanted, w, k)), f, w))
        .collect();
    let mut cosines = Vec::with_capacity(k);
    while let Some(&(best, found, wanted)) = pairs.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        cosines.push(best);
        pairs.retain(|&(_, f, w)| f != found && w != wanted);
    }
    cosines
}

fn column(of: &[f32], which: usize, k: usize) -> impl Iterator<Item = f64> + Clone + '_ {
    of.iter().skip(which).step_by(k).map(|&x| f64::from(x))
}

fn cosine(a: impl Iterator<Item = f64> + Clone, b: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>();
    let product: f64 = a.clone().zip(b.clone()).map(|(a, b)| a * b).sum();
    product / (squares(&mut a.clone()) * squares(&mut b.clone())).sqrt()
}
