//! `plot`: speedup over each peer, by sparsity, as SVG; of an inference, the images and the time of each layer.
use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::cli::PlotOptions;
use crate::operations::peers_of;
use crate::record::{Record, geometric_mean};
use crate::spdnn::Profile;
use lacuna_cases::exit::{Outcome, Usage};

/// Pixels of the picture without its legend.
const WIDTH: u32 = 900;
const AXES: u32 = 480;
/// Pixels of the legend's lines, which stand below the axes.
const LEGEND_LINE: u32 = 24;
/// How far beside its sparsity a peer's points stand.
const BESIDE: f64 = 0.004;
/// Labels of the x axis, at most.
const X_LABELS: usize = 8;
/// The colours of the peers that records of one type have.
const COLOURS: [RGBColor; 6] = [
    RGBColor(90, 160, 60),
    RGBColor(0, 110, 180),
    RGBColor(200, 80, 0),
    RGBColor(130, 60, 160),
    RGBColor(60, 60, 60),
    RGBColor(150, 150, 150),
];
/// Few, and faint.
const GRID: RGBColor = RGBColor(225, 225, 225);

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// The points of one peer: sparsity, and how many times faster ours is.
struct Series {
    label: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Draws the speedups of a file of records, or the layers of the first inference that has their times.
///
/// # Errors
/// Records without peers, or a picture that cannot be written.
pub fn plot(options: &PlotOptions) -> Result<Outcome> {
    if let Some(profile) = Profile::read(&options.records)? {
        profile.draw(&options.out)?;
        return Ok(Outcome::Good);
    }
    let mut records = Record::read_lines(&options.records)?;
    // Of several operations the first is drawn.
    let op = records.first().map(Record::operation);
    records.retain(|record| record.chosen && Some(record.operation()) == op);
    let series = series(&records);
    let Some(first) = records.first().filter(|_| !series.is_empty()) else {
        return Err(Usage(format!("{}: no record with a peer's time", options.records.display())).into());
    };
    let legend = LEGEND_LINE * (series.len() as u32 + 1);
    let root = SVGBackend::new(&options.out, (WIDTH, AXES + legend)).into_drawing_area();
    let draw = || -> Drawn {
        root.fill(&WHITE)?;
        let (axes, below) = root.split_vertically(AXES);
        draw_axes(&axes, first, &series)?;
        draw_legend(&below, &series)?;
        root.present()?;
        Ok(())
    };
    draw().map_err(|error| anyhow!("{} cannot be drawn: {error}", options.out.display()))?;
    Ok(Outcome::Good)
}

/// The peers that some record has, each with a colour.
fn series(records: &[Record]) -> Vec<Series> {
    let mut peers = peers_of(records);
    peers.retain(|&(peer, _)| records.iter().any(|record| record.speedup(peer).is_some()));
    let count = peers.len();
    let of_peer = |(index, ((peer, title), colour)): (usize, ((&str, &str), RGBColor))| {
        // Suites have few sparsities: the peers stand beside each other, not on each other.
        let aside = (index as f64 - 0.5 * (count - 1) as f64) * BESIDE;
        let point = |record: &Record| Some((record.sparsity + aside, record.speedup(peer)?));
        let points: Vec<(f64, f64)> = records.iter().filter_map(point).collect();
        let mean = geometric_mean(points.iter().map(|&(_, speedup)| speedup))?;
        Some(Series { label: format!("over {title}: {mean:.2}× in geometric mean"), colour, points })
    };
    peers.into_iter().zip(COLOURS).enumerate().filter_map(of_peer).collect()
}

/// Powers of two inside a range that holds 1.
fn powers_of_two(range: &Range<f64>) -> Vec<f64> {
    let (from, to) = (range.start.log2().ceil() as i32, range.end.log2().floor() as i32);
    (from..=to).map(|exponent| f64::from(exponent).exp2()).collect()
}

fn draw_axes(area: &DrawingArea<SVGBackend<'_>, Shift>, first: &Record, series: &[Series]) -> Drawn {
    let points = || series.iter().flat_map(|series| &series.points);
    let (left, right) = points().fold((1.0_f64, 0.0_f64), |(from, to), &(x, _)| (from.min(x), to.max(x)));
    let (low, high) = points().fold((1.0_f64, 1.0_f64), |(low, high), &(_, y)| (low.min(y), high.max(y)));
    let (x_range, y_range) = (left - 0.02..right + 0.02, low * 0.8..high * 1.25);
    let op = first.operation().title;
    let title = format!("{op}, {}, suite {}: speedup by sparsity", first.machine.device, first.suite);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
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
        .x_labels(X_LABELS)
        .x_label_formatter(&|sparsity| format!("{:.0} %", sparsity * 100.0))
        .y_label_formatter(&|speedup| format!("{speedup}×"))
        .x_desc(if first.op == "spmm" { "zeros of A" } else { "zeros" })
        .y_desc("times faster")
        .draw()?;
    // Below this line the peer is the faster one.
    let even = [(x_range.start, 1.0), (x_range.end, 1.0)];
    chart.draw_series([PathElement::new(even, BLACK.stroke_width(2))])?;
    for Series { colour, points, .. } in series {
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, colour.mix(0.6).filled())))?;
    }
    Ok(())
}

fn draw_legend(area: &DrawingArea<SVGBackend<'_>, Shift>, series: &[Series]) -> Drawn {
    for (line, Series { label, colour, .. }) in series.iter().enumerate() {
        let y = (LEGEND_LINE * line as u32 + LEGEND_LINE / 2) as i32;
        area.draw(&Circle::new((70, y), 5, colour.filled()))?;
        area.draw(&Text::new(label.as_str(), (84, y - 8), ("sans-serif", 16)))?;
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
