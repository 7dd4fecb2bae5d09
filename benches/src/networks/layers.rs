//! A network layer by layer.
use anyhow::Result;
use lacuna_cases::Number;

use super::How;
use super::planned::{Planned, Timed};
use super::record::LayerRecord;

/// Measures each layer by itself, in the order in which they run, so that each finds what it reads.
pub(super) fn measure<T: Number>(
    planned: &mut Planned<'_, T>,
    case: &str,
    how: How<'_>,
) -> Result<Vec<LayerRecord>> {
    let zeros = planned.zeros()?;
    let mut records = Vec::new();
    for (number, (layer, zero_outputs)) in planned.model.report().layers.into_iter().zip(zeros).enumerate() {
        let Timed { time_us, model_us, energy_mj } = if layer.kernel == "none" {
            Timed { time_us: None, model_us: Default::default(), energy_mj: None }
        } else {
            let name = format!("{case} {}", layer.name);
            planned.time(&name, how, |planned, stream| planned.run_layer(stream, number))?
        };
        let (name, kernel, splits, zero_weights) =
            (layer.name, layer.kernel, layer.splits, layer.zero_weights);
        let share = None;
        records.push(LayerRecord {
            name,
            kernel,
            splits,
            zero_weights,
            zero_outputs,
            time_us,
            model_us,
            share,
            energy_mj,
        });
    }
    share(&mut records);
    Ok(records)
}

/// Each layer's part of the time of all of them.
fn share(records: &mut [LayerRecord]) {
    let whole: f64 = records.iter().filter_map(LayerRecord::us).sum();
    for record in records {
        record.share = record.us().filter(|_| whole > 0.0).map(|us| us / whole);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::timing::Timing;

    /// A layer of so many microseconds, where it launches something.
    pub(crate) fn layer(name: &str, us: Option<f64>) -> LayerRecord {
        LayerRecord {
            name: name.into(),
            kernel: us.map_or("none", |_| "spmm_f32").into(),
            splits: 1,
            zero_weights: us.map(|_| 0.9),
            zero_outputs: 0.5,
            time_us: us.map(|us| Timing { median: us, min: us, max: us }),
            model_us: Default::default(),
            share: None,
            energy_mj: None,
        }
    }

    #[test]
    fn shares_are_parts_of_all_layers_that_take_time() {
        let mut layers = [layer("a", Some(3.0)), layer("b", None), layer("c", Some(1.0))];
        share(&mut layers);
        assert_eq!(layers.map(|layer| layer.share), [Some(0.75), None, Some(0.25)]);
        let mut nothing = [layer("a", None)];
        share(&mut nothing);
        assert_eq!(nothing[0].share, None);
    }
}
