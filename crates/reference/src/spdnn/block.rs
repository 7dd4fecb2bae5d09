//! Rows that go through a network together.
//!
//! Equal rows become one, and stay so: where the inputs of all neurons have died, or have all reached the same end of the
//! clamp, a row's further way is computed once.

use super::SpdnnLayer;
use crate::bound::{Known, Products};
use std::collections::HashMap;

/// Rows that a pass over a layer's weights computes.
const LANES: usize = 4;

/// Some rows between two layers.
pub(super) struct Block {
    /// For each row, which of the distinct rows it is.
    pub(super) places: Vec<usize>,
    /// How many distinct rows there are.
    pub(super) distinct: usize,
    neurons: usize,
    /// The distinct rows, `LANES` a tile; what is left of the last tile are zeros.
    tiles: Vec<Tile>,
}

/// One group a neuron.
type Tile = Vec<Group>;

/// A neuron's values in the rows of a tile.
#[derive(Clone, Copy)]
struct Group {
    value: [f64; LANES],
    low: [f32; LANES],
    high: [f32; LANES],
    size: [f32; LANES],
}

impl Group {
    const ZERO: Self =
        Self { value: [0.0; LANES], low: [0.0; LANES], high: [0.0; LANES], size: [0.0; LANES] };

    fn get(&self, lane: usize) -> Known {
        let &Self { value, low, high, size } = self;
        Known { value: value[lane], low: low[lane], high: high[lane], size: size[lane] }
    }

    fn set(&mut self, lane: usize, known: Known) {
        self.value[lane] = known.value;
        self.low[lane] = known.low;
        self.high[lane] = known.high;
        self.size[lane] = known.size;
    }
}

impl Block {
    /// Rows of inputs, row-major, `inputs` each.
    pub(super) fn new(features: &[f32], inputs: usize) -> Self {
        let rows = features.len().checked_div(inputs).unwrap_or(0);
        let mut tiles = vec![vec![Group::ZERO; inputs]; rows.div_ceil(LANES)];
        for (at, &x) in features.iter().enumerate() {
            let (row, neuron) = (at / inputs, at % inputs);
            tiles[row / LANES][neuron].set(row % LANES, Known::exactly(x));
        }
        let mut block = Self { places: (0..rows).collect(), distinct: rows, neurons: inputs, tiles };
        block.merge();
        block
    }

    /// Goes through a layer. Its shapes fit.
    pub(super) fn pass(&mut self, layer: &SpdnnLayer<'_>) {
        for tile in &mut self.tiles {
            *tile = (0..layer.weights.rows()).map(|output| group(layer, output, tile)).collect();
        }
        self.neurons = layer.weights.rows();
        self.merge();
    }

    /// The values of the distinct rows, one after another.
    pub(super) fn known(&self) -> impl Iterator<Item = Known> {
        (0..self.distinct).flat_map(|row| self.row(row))
    }

    fn row(&self, row: usize) -> impl Iterator<Item = Known> {
        self.tiles[row / LANES].iter().map(move |group| group.get(row % LANES))
    }

    /// Makes equal rows one.
    fn merge(&mut self) {
        let mut first = HashMap::new();
        let mut kept = Vec::new();
        let places: Vec<usize> = (0..self.distinct)
            .map(|row| {
                let hash = self.row(row).fold(0u64, |hash, known| {
                    let bits = u64::from(known.low.to_bits()) << 32 | u64::from(known.high.to_bits());
                    (hash.rotate_left(5) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                });
                let place = *first.entry(hash).or_insert(kept.len());
                if place < kept.len() && self.row(kept[place]).eq(self.row(row)) {
                    return place;
                }
                kept.push(row);
                kept.len() - 1
            })
            .collect();
        if kept.len() == self.distinct {
            return;
        }
        let mut tiles = vec![vec![Group::ZERO; self.neurons]; kept.len().div_ceil(LANES)];
        for (place, &row) in kept.iter().enumerate() {
            for (group, known) in tiles[place / LANES].iter_mut().zip(self.row(row)) {
                group.set(place % LANES, known);
            }
        }
        self.places.iter_mut().for_each(|place| *place = places[*place]);
        (self.distinct, self.tiles) = (kept.len(), tiles);
    }
}

/// An output of a layer in the rows of a tile.
fn group(layer: &SpdnnLayer<'_>, output: usize, tile: &[Group]) -> Group {
    let (columns, weights) = layer.weights.row(output);
    let edges = || weights.iter().zip(columns).map(|(&weight, &column)| (weight, &tile[column as usize]));
    let (mut value, mut low, mut high) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let (mut size, mut count, mut factors) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for (weight, y) in edges() {
        let weight = f64::from(weight);
        let (least, greatest) = if weight < 0.0 { (&y.high, &y.low) } else { (&y.low, &y.high) };
        for lane in 0..LANES {
            let product = weight.abs() * f64::from(y.size[lane]);
            value[lane] += weight * y.value[lane];
            low[lane] += weight * f64::from(least[lane]);
            high[lane] += weight * f64::from(greatest[lane]);
            size[lane] += product;
            count[lane] += if product == 0.0 { 0.0 } else { 1.0 };
            factors[lane] += if product == 0.0 { 0.0 } else { weight.abs() };
        }
    }
    let bias = layer.bias[if layer.bias.len() == 1 { 0 } else { output }];
    let mut group = Group::ZERO;
    for lane in 0..LANES {
        // A factor that may be infinite or NaN shows here, also where the other one is zero.
        let products = if size[lane].is_finite() {
            Products::finite(value[lane], low[lane], high[lane], size[lane], [count[lane], factors[lane]])
        } else {
            Products::of(edges().map(|(weight, y)| (weight, y.get(lane))))
        };
        group.set(lane, products.output(bias, [layer.lo, layer.hi], layer.tensor_cores));
    }
    group
}
