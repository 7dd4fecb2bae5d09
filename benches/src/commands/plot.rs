//! `plot`: speedup over each peer, by sparsity, as SVG.
use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::cli::PlotOptions;
use crate::operations::peers_of;
use crate::record::{Record, geometric_mean};
use lacuna_cases::exit::{Outcome, Usage};

const SIZE: (u32, u32) = (900, 560);
/// How far beside its sparsity a peer's points stand.
const BESIDE: f64 = 0.004;
/// The colours of the peers that records of one type have.
const COLOURS: [RGBColor; 6] = [
    RGBColor(90, 160, 60),
    RGBColor(0, 110, 180),
    RGBColor(200, 80, 0),
    RGBColor(130, 60, 160),
    RGBColor(60, 60, 60),
    RGBColor(150, 150, 150),
];

/// Draws the speedups of a file of records.
///
/// # Errors
/// Records without peers, or a picture that cannot be written.
pub fn plot(options: &PlotOptions) -> Result<Outcome> {
    let records = Record::read_lines(&options.records)?;
    // Of several operations the first is drawn.
    let op = records.first().map(Record::operation);
    let records: Vec<Record> = records.into_iter().filter(|r| Some(r.operation()) == op).collect();
    let mut peers = peers_of(&records);
    peers.retain(|&(peer, _)| records.iter().any(|record| record.speedup(peer).is_some()));
    let all: Vec<f64> =
        peers.iter().flat_map(|&(peer, ..)| records.iter().filter_map(move |r| r.speedup(peer))).collect();
    let (low, high) = all.iter().fold((1.0_f64, 1.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
    let Some(first) = records.first().filter(|_| !all.is_empty()) else {
        return Err(Usage(format!("{}: no record with a peer's time", options.records.display())).into());
    };
    let x_range = {
        let sparsities = records.iter().map(|record| record.sparsity);
        let (from, to) = sparsities.fold((1.0_f64, 0.0_f64), |(from, to), x| (from.min(x), to.max(x)));
        from - 0.02..to + 0.02
    };
    let root = SVGBackend::new(&options.out, SIZE).into_drawing_area();
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        root.fill(&WHITE)?;
        let op = first.operation().title;
        let title = format!("{op}, {}, suite {}: speedup by sparsity", first.machine.device, first.suite);
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(x_range, (low * 0.8..high * 1.25).log_scale())?;
        chart
            .configure_mesh()
            .x_desc(if first.op == "spmm" { "sparsity of A" } else { "sparsity" })
            .y_desc("times faster")
            .draw()?;
        for (index, ((peer, title), colour)) in peers.iter().copied().zip(COLOURS).enumerate() {
            // Suites have few sparsities: the peers stand beside each other, not on each other.
            let aside = (index as f64 - 0.5 * (peers.len() - 1) as f64) * BESIDE;
            let points: Vec<(f64, f64)> = records
                .iter()
                .filter(|record| record.chosen)
                .filter_map(|record| Some((record.sparsity + aside, record.speedup(peer)?)))
                .collect();
            let Some(mean) = geometric_mean(points.iter().map(|&(_, y)| y)) else { continue };
            chart
                .draw_series(points.iter().map(|&point| Circle::new(point, 4, colour.mix(0.6).filled())))?
                .label(format!("over {title}: {mean:.2}× in geometric mean"))
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .border_style(BLACK)
            .background_style(WHITE.mix(0.9))
            .draw()?;
        root.present()?;
        Ok(())
    };
    draw().map_err(|error| anyhow!("{} cannot be drawn: {error}", options.out.display()))?;
    Ok(Outcome::Good)
}
