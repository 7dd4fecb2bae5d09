//! `plot`: speedup over each peer, by sparsity, as SVG; of an inference, the images and the time of each layer; of convolutions,
//! means by the zeros of the maps; of networks how many times faster each is.
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::cli::PlotOptions;
use crate::operations::peers_of;
use crate::picture::{AXES, Drawn, GRID, LEGEND_LINE, WIDTH, legend, powers_of_two};
use crate::record::{Record, geometric_mean};
use crate::spdnn::Profile;
use crate::{conv, networks};
use lacuna_cases::exit::{Outcome, Usage};

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

/// The points of one peer: sparsity, and how many times faster ours is.
struct Series {
    label: String,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Draws the speedups of a file of records, or the layers of the first inference that has their times, or convolutions, or networks.
///
/// # Errors
/// Records without peers, or a picture that cannot be written.
pub fn plot(options: &PlotOptions) -> Result<Outcome> {
    if let Some(profile) = Profile::read(&options.records)? {
        profile.draw(&options.out)?;
        return Ok(Outcome::Good);
    }
    if conv::Record::is_first_of(&options.records) {
        conv::plot(&options.records, &options.out)?;
        return Ok(Outcome::Good);
    }
    if networks::is_first_of(&options.records) {
        networks::plot(&options.records, &options.out)?;
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
    let below = LEGEND_LINE * (series.len() as u32 + 1);
    let root = SVGBackend::new(&options.out, (WIDTH, AXES + below)).into_drawing_area();
    let draw = || -> Drawn {
        root.fill(&WHITE)?;
        let (axes, below) = root.split_vertically(AXES);
        draw_axes(&axes, first, &series)?;
        legend(&below, series.iter().map(|series| (series.label.as_str(), series.colour)))?;
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
