//! A picture of networks: how many times faster than what each is set against.
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use lacuna_cases::exit::Usage;
use plotters::coord::Shift;
use plotters::prelude::*;
use serde::Deserialize;

use super::record::{CUDNN, DENSE, SAME_ACCURACY};
use crate::picture::{Drawn, GRID, LEGEND_LINE, WIDTH, legend, powers_of_two};
use crate::record::{geometric_mean, operation_of_first};

/// What records of networks call their operation.
const OP: &str = "model";
/// Pixels of a network's line, and of what is above and below all of them.
const LINE: u32 = 24;
const AROUND: u32 = 110;
/// Peers, what they are, and their colours.
const PEERS: [(&str, &str, RGBColor); 3] = [
    (CUDNN, "the same with dense weights, by cuDNN", RGBColor(0, 110, 180)),
    (DENSE, "the same with dense weights, by our kernels", RGBColor(200, 80, 0)),
    (
        SAME_ACCURACY,
        "the dense one of the same accuracy (SC 2020, table IV), by our kernels",
        RGBColor(90, 160, 60),
    ),
];

/// What is read of a [`Record`](super::Record).
#[derive(Debug, Deserialize)]
struct Known {
    op: String,
    case: String,
    width: Option<f64>,
    batch: usize,
    sparsity: f64,
    #[serde(default)]
    value: String,
    time_us: Option<Median>,
    #[serde(default)]
    peers: BTreeMap<String, KnownTwin>,
    device: String,
}

#[derive(Debug, Deserialize)]
struct KnownTwin {
    time_us: Option<Median>,
}

#[derive(Debug, Deserialize)]
struct Median {
    median: f64,
}

/// A network, and how many times faster it is than each of [`PEERS`].
#[derive(Debug, PartialEq)]
struct Network {
    name: String,
    speeds: [Option<f64>; PEERS.len()],
}

/// Whether the first record of a file is a network's.
pub fn is_first_of(records: &Path) -> bool {
    operation_of_first(records).is_some_and(|op| op == OP)
}

/// Draws the measured networks of a file, as SVG: of several records of one network the last.
///
/// # Errors
/// Lines that are no records, records of which none has a peer's time, or a picture that cannot be written.
pub fn plot(records: &Path, out: &Path) -> Result<()> {
    let at = || records.display();
    let text = std::fs::read_to_string(records).with_context(|| format!("{}", at()))?;
    let mut known = Vec::new();
    for (line, record) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let record = serde_json::from_str::<Known>(record)
            .map_err(|error| Usage(format!("{}:{}: no record of a network: {error}", at(), line + 1)))?;
        known.push(record);
    }
    let networks = networks(&known);
    let Some(first) = known.first().filter(|_| !networks.is_empty()) else {
        return Err(Usage(format!("{}: no network with a peer's time", at())).into());
    };
    let title = format!("networks, {}: times faster", first.device);
    draw(&title, &networks, out).map_err(|error| anyhow!("{} cannot be drawn: {error}", out.display()))
}

/// Those with a peer's time, in the order in which they came first.
fn networks(known: &[Known]) -> Vec<Network> {
    let mut found: Vec<Network> = Vec::new();
    for record in known.iter().filter(|record| record.op == OP) {
        let Some(own) = &record.time_us else { continue };
        let speed = |peer: &str| Some(record.peers.get(peer)?.time_us.as_ref()?.median / own.median);
        let network = Network { name: record.name(), speeds: PEERS.map(|(peer, ..)| speed(peer)) };
        if network.speeds.iter().all(Option::is_none) {
            continue;
        }
        match found.iter_mut().find(|other| other.name == network.name) {
            Some(other) => *other = network,
            None => found.push(network),
        }
    }
    found
}

impl Known {
    fn name(&self) -> String {
        let Self { case, batch, sparsity, value, .. } = self;
        let mut name = case.clone();
        if let Some(width) = self.width {
            name += &format!(" {width:.1}");
        }
        if *sparsity > 0.0 {
            name += &format!(", {:.0} % zeros", sparsity * 100.0);
        }
        if *batch != 1 {
            name += &format!(", batch {batch}");
        }
        if !value.is_empty() && value != "f32" {
            name += &format!(", {value}");
        }
        name
    }
}

fn draw(title: &str, networks: &[Network], out: &Path) -> Drawn {
    let mean = |peer: usize| geometric_mean(networks.iter().filter_map(|network| network.speeds[peer]));
    let entries = PEERS.iter().enumerate().filter_map(|(peer, (_, about, colour))| {
        Some((format!("over {about}: {:.2}× in geometric mean", mean(peer)?), *colour))
    });
    let entries: Vec<(String, RGBColor)> = entries.collect();
    let (axes, below) = (AROUND + LINE * networks.len() as u32, LEGEND_LINE * (entries.len() as u32 + 1));
    let root = SVGBackend::new(out, (WIDTH, axes + below)).into_drawing_area();
    root.fill(&WHITE)?;
    let (axes, below) = root.split_vertically(axes);
    draw_axes(&axes, title, networks)?;
    legend(&below, entries.iter().map(|(label, colour)| (label.as_str(), *colour)))?;
    root.present()?;
    Ok(())
}

fn draw_axes(area: &DrawingArea<SVGBackend<'_>, Shift>, title: &str, networks: &[Network]) -> Drawn {
    let speeds = || networks.iter().flat_map(|network| network.speeds.iter().flatten());
    let (low, high) = speeds().fold((1.0_f64, 1.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
    let (x_range, lines) = (low * 0.9..high * 1.1, networks.len() as i32);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(200)
        .build_cartesian_2d(
            x_range.clone().log_scale().with_key_points(powers_of_two(&x_range)),
            (0..lines - 1).into_segmented(),
        )?;
    // The first network is above.
    let name = |line: &SegmentValue<i32>| match line {
        SegmentValue::Exact(line) | SegmentValue::CenterOf(line) => {
            let network = networks.get((lines - 1 - line) as usize);
            network.map_or_else(String::new, |network| network.name.clone())
        }
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .disable_y_mesh()
        .y_labels(networks.len())
        .x_label_formatter(&|speed| format!("{speed}×"))
        .y_label_formatter(&name)
        .x_desc("times faster")
        .draw()?;
    // Left of this line the peer is the faster one.
    let even = [(1.0, SegmentValue::Exact(0)), (1.0, SegmentValue::Last)];
    chart.draw_series([PathElement::new(even, BLACK.stroke_width(2))])?;
    for (network, y) in networks.iter().zip((0..lines).rev()) {
        for (speed, (_, _, colour)) in network.speeds.iter().zip(PEERS) {
            let at = |speed| Circle::new((speed, SegmentValue::CenterOf(y)), 5, colour.mix(0.8).filled());
            chart.draw_series(speed.map(at))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(case: &str, us: Option<f64>, peers: serde_json::Value) -> Known {
        let time = us.map(|us| json!({ "median": us, "min": us, "max": us }));
        let record = json!({
            "op": "model", "case": case, "width": 1.5, "batch": 2, "sparsity": 0.9, "value": "f16", "time_us": time, "peers": peers,
            "device": "a GPU",
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn the_last_record_of_a_network_counts() {
        let twin = |us: f64| json!({ "time_us": { "median": us } });
        let known = [
            record("mobilenet", Some(10.0), json!({ "cudnn": twin(90.0) })),
            record("no peer", Some(10.0), json!({})),
            record("simulated", None, json!({ "cudnn": twin(90.0) })),
            record(
                "mobilenet",
                Some(10.0),
                json!({ "cudnn": twin(40.0), "same_accuracy": twin(15.0), "dense": {} }),
            ),
        ];
        let name = "mobilenet 1.5, 90 % zeros, batch 2, f16".to_owned();
        assert_eq!(networks(&known), [Network { name, speeds: [Some(4.0), None, Some(1.5)] }]);
        assert!(networks(&known[1..3]).is_empty());
    }
}
