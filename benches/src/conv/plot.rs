//! A picture of many layers: how many times faster than cuDNN's best in full fp32, by the zeros of the maps.
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow};
use lacuna_cases::exit::Usage;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::{CUDNN_F32, Record, title};
use crate::picture::{AXES, Drawn, GRID, LEGEND_LINE, WIDTH, legend, powers_of_two};
use crate::timing::Speeds;

/// The colours of the lines, one for each number of images and layout.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 110, 180), RGBColor(200, 80, 0), RGBColor(90, 160, 60), RGBColor(130, 60, 160)];
/// The colour of real maps.
const REAL: RGBColor = RGBColor(60, 60, 60);

/// Layers of one number of images and layout.
struct Line {
    label: String,
    /// The part of zeros, and what all layers come to there.
    points: Vec<(f64, Speeds)>,
}

/// What is drawn of a file.
struct Picture {
    title: String,
    lines: Vec<Line>,
    /// Zeros and speeds of real maps.
    real: Vec<(f64, f64)>,
}

/// Draws the file's convolutions of `f32` by the library's choice, as SVG: geometric means and what they are of.
///
/// # Errors
/// Records of which none has cuDNN's time, or a picture that cannot be written.
pub fn plot(records: &Path, out: &Path) -> Result<()> {
    let known = Record::read_lines(records)?;
    let picture = Picture::of(&known).ok_or_else(|| {
        Usage(format!("{}: no drawn maps with a time of peer `{CUDNN_F32}`", records.display()))
    })?;
    picture.draw(out).map_err(|error| anyhow!("{} cannot be drawn: {error}", out.display()))
}

impl Picture {
    fn of(records: &[Record]) -> Option<Self> {
        let is_drawn = |record: &&Record| {
            record.chosen
                && record.is_right()
                && !record.is_depthwise()
                && record.sparsity.is_none()
                && record.value == "f32"
                && record.speedup(CUDNN_F32).is_some()
        };
        let records: Vec<&Record> = records.iter().filter(is_drawn).collect();
        let kinds: BTreeSet<(usize, &str)> = records
            .iter()
            .filter(|record| record.level.is_some())
            .map(|record| (record.batch, record.layout.as_str()))
            .collect();
        let several = kinds.iter().any(|(_, layout)| kinds.iter().any(|(_, other)| other != layout));
        let line = |(batch, layout): (usize, &str)| {
            let of_kind: Vec<&Record> = records
                .iter()
                .copied()
                .filter(|record| record.batch == batch && record.layout == layout)
                .collect();
            let levels: BTreeSet<u32> = of_kind.iter().filter_map(|record| record.percent()).collect();
            let point = |level: u32| {
                let of_level = of_kind.iter().copied().filter(|record| record.percent() == Some(level));
                let speeds = of_level.filter_map(|record| record.speedup(CUDNN_F32));
                Some((f64::from(level) / 100.0, Speeds::of(speeds)?))
            };
            let points: Vec<(f64, Speeds)> = levels.into_iter().filter_map(point).collect();
            let layers = points.iter().map(|(_, summary)| summary.count).max().unwrap_or(0);
            let layout = if several { format!(", {layout}") } else { String::new() };
            let images = if batch == 1 { "one image".into() } else { format!("{batch} images") };
            let label = format!("{images}{layout}: geometric mean of {layers} layers; least and greatest");
            Line { label, points }
        };
        let first = records.first()?;
        let real = records.iter().filter(|record| record.level.is_none());
        Some(Self {
            title: format!(
                "convolution, {}: speed over {}, by zeros",
                first.machine.device,
                title(CUDNN_F32)
            ),
            real: real.filter_map(|record| Some((record.zeros, record.speedup(CUDNN_F32)?))).collect(),
            lines: kinds.into_iter().map(line).collect(),
        })
        .filter(|picture| !picture.lines.is_empty())
    }

    fn draw(&self, path: &Path) -> Drawn {
        let entries = self.lines.iter().zip(COLOURS).map(|(line, colour)| (line.label.as_str(), colour));
        let real = (!self.real.is_empty()).then_some(("real feature maps, one each", REAL));
        let entries: Vec<(&str, RGBColor)> = entries.chain(real).collect();
        let below = LEGEND_LINE * (entries.len() as u32 + 1);
        let root = SVGBackend::new(path, (WIDTH, AXES + below)).into_drawing_area();
        root.fill(&WHITE)?;
        let (axes, below) = root.split_vertically(AXES);
        self.axes(&axes)?;
        legend(&below, entries.into_iter())?;
        root.present()?;
        Ok(())
    }

    fn axes(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let ends = self.lines.iter().flat_map(|line| &line.points);
        let ends = ends.flat_map(|(_, summary)| [summary.least, summary.most]);
        let ends = ends.chain(self.real.iter().map(|&(_, speed)| speed));
        let (low, high) = ends.fold((1.0_f64, 1.0_f64), |(low, high), y| (low.min(y), high.max(y)));
        let (x_range, y_range) = (-0.02..0.98, low * 0.8..high * 1.25);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(
                x_range.clone(),
                y_range.clone().log_scale().with_key_points(powers_of_two(&y_range)),
            )?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .x_labels(11)
            .x_label_formatter(&|zeros: &f64| format!("{:.0} %", zeros * 100.0))
            .y_label_formatter(&|speed: &f64| format!("{speed}×"))
            .x_desc("zeros of the feature map")
            .y_desc("times faster")
            .draw()?;
        // Below this line cuDNN is the faster one.
        let even = [(x_range.start, 1.0), (x_range.end, 1.0)];
        chart.draw_series([PathElement::new(even, BLACK.stroke_width(2))])?;
        for (Line { points, .. }, colour) in self.lines.iter().zip(COLOURS) {
            let least = points.iter().map(|&(x, summary)| (x, summary.least));
            let most = points.iter().rev().map(|&(x, summary)| (x, summary.most));
            let band: Vec<(f64, f64)> = least.chain(most).collect();
            chart.draw_series([Polygon::new(band, colour.mix(0.12).filled())])?;
            let means = points.iter().map(|&(x, summary)| (x, summary.mean));
            chart.draw_series(LineSeries::new(means.clone(), colour.stroke_width(2)))?;
            chart.draw_series(means.map(|point| Circle::new(point, 4, colour.filled())))?;
        }
        chart.draw_series(self.real.iter().map(|&point| Circle::new(point, 4, REAL.stroke_width(1))))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A layer with a part of zeros, ours and cuDNN's time.
    fn record(batch: usize, level: Option<f64>, us: f64, peer: f64) -> Record {
        let record = json!({
            "op": "conv", "case": "a network", "batch": batch, "channels": 1, "size": [1, 1], "filters": 1,
            "level": level, "zeros": level.unwrap_or(0.6), "layout": "nchw", "algorithm": "kernel", "splits": 1,
            "chosen": true, "time_us": { "median": us, "min": us, "max": us }, "error_over_bound": 0.1,
            "products": 1, "seed": 1, "device": "a GPU", "driver": "", "clocks": null, "revision": "",
            "peers": { "cudnn_f32": { "median": peer, "min": peer, "max": peer, "algorithm": "", "version": "",
                "error_over_bound": null } },
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn a_line_has_the_mean_of_its_layers_at_each_part_of_zeros() {
        let mut records = vec![
            record(16, Some(0.7), 1.0, 3.0),
            record(1, Some(0.7), 1.0, 2.0),
            record(1, Some(0.7), 1.0, 8.0),
            record(1, Some(0.9), 1.0, 5.0),
            record(1, None, 2.0, 5.0),
        ];
        // None of these counts.
        for spoilt in 0..4 {
            let mut other = record(1, Some(0.7), 1.0, 1000.0);
            match spoilt {
                0 => other.chosen = false,
                1 => other.value = "f16".into(),
                2 => other.error_over_bound = 2.0,
                _ => other.case = "MobileNetV1".into(),
            }
            records.push(other);
        }
        let picture = Picture::of(&records).unwrap();
        let [one, sixteen] = &picture.lines[..] else { panic!("{} lines", picture.lines.len()) };
        assert!(one.label.starts_with("one image: geometric mean of 2"), "{}", one.label);
        assert!(sixteen.label.starts_with("16 images: "), "{}", sixteen.label);
        let [(level, summary), (next, _)] = one.points[..] else { panic!("{} points", one.points.len()) };
        assert_eq!((level, next, summary.least, summary.most), (0.7, 0.9, 2.0, 8.0));
        approx::assert_relative_eq!(summary.mean, 4.0);
        assert_eq!(picture.real, [(0.6, 2.5)]);
        assert!(Picture::of(&records[4..5]).is_none(), "real maps alone are no line");
    }
}
