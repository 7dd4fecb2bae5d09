//! What the paper reached.

/// Rates of the paper's Table I, in TeraEdges a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// On one V100.
    pub v100: f64,
    /// On one A100.
    pub a100: f64,
    /// On 768 V100.
    pub v100_768: f64,
}

/// Neurons, layers, and what the paper (Hidayetoğlu et al., HPEC 2020, Table I) reached.
const TABLE: [(usize, usize, [f64; 3]); 12] = [
    (1024, 120, [10.51, 16.74, 29.13]),
    (1024, 480, [12.87, 20.99, 23.06]),
    (1024, 1920, [14.30, 20.68, 28.83]),
    (4096, 120, [9.45, 14.27, 82.20]),
    (4096, 480, [11.74, 18.63, 82.22]),
    (4096, 1920, [13.88, 19.86, 82.32]),
    (16384, 120, [6.15, 11.60, 111.30]),
    (16384, 480, [7.45, 14.31, 139.44]),
    (16384, 1920, [7.84, 15.27, 146.40]),
    (65536, 120, [3.47, 8.15, 179.58]),
    (65536, 480, [3.83, 9.08, 169.30]),
    (65536, 1920, [3.93, 9.33, 171.37]),
];

/// What the paper reached for a network of this size.
pub fn published(neurons: usize, layers: usize) -> Option<Published> {
    let found = TABLE.iter().find(|row| (row.0, row.1) == (neurons, layers));
    found.map(|&(_, _, [v100, a100, v100_768])| Published { v100, a100, v100_768 })
}
