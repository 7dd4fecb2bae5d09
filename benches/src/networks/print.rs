//! Records of networks for people.
use super::record::{CUDNN, Cost, DENSE, LayerRecord, MaskRecord, Record, SAME_ACCURACY, Twin};
use crate::table::{align_numbers, new_table};
use crate::timing::Speeds;

/// All twins, in the order in which they are told.
const TWINS: [&str; 3] = [DENSE, CUDNN, SAME_ACCURACY];

/// What a network came to, in a few lines.
pub fn line(record: &Record) -> String {
    let Record { case, batch, layout, value, sparse_layers, launches, .. } = record;
    let width = record.width.map(|width| format!(" width {width}")).unwrap_or_default();
    let cut = if record.cut { ", cut to the simulator's size" } else { "" };
    let pruned = if record.sparsity > 0.0 {
        let faster = if record.faster { ", sparse where that is faster" } else { "" };
        format!("{:.0} % of 1×1 and linear weights pruned{faster}", record.sparsity * 100.0)
    } else {
        "dense".into()
    };
    let mut text = format!(
        "{case}{width}: {batch} × {} {layout} {value}, {pruned}, weights {}{cut}\n",
        size(record),
        record.weights
    );
    if let Some(masks) = &record.masks {
        text += &format!("  {}\n", of_masks(masks));
    }
    let (each, unit) = record.tokens.map_or((1.0, "frames"), |tokens| (tokens as f64, "tokens"));
    let rate = |a_second: f64| format!("{:.0}", each * a_second);
    let frames = record.frames_per_s.map(|frames| format!(", {} {unit}/s", rate(frames))).unwrap_or_default();
    let paper = record.paper_frames_per_s;
    let paper = paper.map(|frames| format!(" (paper, V100: {})", rate(frames))).unwrap_or_default();
    text += &format!(
        "  {}{frames}{paper}; {launches} layers launch kernels, {sparse_layers} have sparse weights\n",
        time(&record.cost)
    );
    let Cost { peak_bytes, sum_bytes, weight_bytes, workspace_bytes, .. } = record.cost;
    let [peak, sum, weights, plans] = [peak_bytes, sum_bytes, weight_bytes, workspace_bytes].map(mb);
    text += &format!(
        "  {peak} MB of values at most ({sum} without sharing), {weights} of weights, {plans} of plans\n"
    );
    let verdict = if record.is_right() { "" } else { "  WRONG" };
    let of_which = if record.checked_whole { "" } else { " of a cut network" };
    let error = if record.error_over_bound <= 1.0 {
        format!("within {:.2} of their bounds", record.error_over_bound)
    } else {
        "not all within their bounds".into()
    };
    text += &format!(
        "  checked: {} layers{of_which}, {error}; scores off by {:.1e} of the greatest (at most {:.1e}){verdict}",
        record.checked_layers,
        record.difference,
        record.limit()
    );
    for (name, twin) in TWINS.iter().filter_map(|name| Some((name, record.peers.get(name)?))) {
        text += &format!("\n  {}", of_twin(record, name, twin));
    }
    text
}

/// Where the masks of layers are from.
fn of_masks(MaskRecord { real, drawn }: &MaskRecord) -> String {
    if real.is_empty() {
        return format!("masks: none of DLMC's; those of all {drawn} layers are drawn weights, pruned");
    }
    format!("masks: DLMC's for {}; those of {drawn} other layers are drawn weights, pruned", real.join(", "))
}

/// What an image or a sequence has.
fn size(record: &Record) -> String {
    match (record.tokens, record.resolution) {
        (Some(tokens), _) => format!("{tokens} tokens"),
        (None, Some(resolution)) => format!("{resolution} × {resolution}"),
        (None, None) => "no size".into(),
    }
}

fn of_twin(record: &Record, name: &str, twin: &Twin) -> String {
    let width = twin.width.map(|width| format!(" width {width}")).unwrap_or_default();
    let version = twin.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let speedup = match record.speedup(name) {
        Some(speedup) => format!("{speedup:.2} × its speed"),
        None => "no speedup: its scores are wrong".into(),
    };
    let paper = record.paper_frames_per_s.zip(twin.paper_frames_per_s);
    let paper = paper.map(|(ours, its)| format!(" (paper: {:.2} ×)", ours / its)).unwrap_or_default();
    format!("{name}{version}{width}: {}, {speedup}{paper}", time(&twin.cost))
}

/// A time in words.
fn time(cost: &Cost) -> String {
    let energy = cost.energy_mj.map(|mj| format!(", {mj:.3} mJ")).unwrap_or_default();
    match (cost.time_us, cost.us()) {
        (Some(time), _) => format!("{:.1} us ({:.1} to {:.1}){energy}", time.median, time.min, time.max),
        (None, Some(us)) => format!("{us:.1} us (model of an H200)"),
        _ => "no time".into(),
    }
}

fn mb(bytes: usize) -> String {
    let digits = if bytes < 1_000_000 { 3 } else { 1 };
    format!("{:.digits$}", bytes as f64 / 1e6)
}

/// The layers as a table.
pub fn layers(record: &Record) -> String {
    let has_energy = record.layers.iter().any(|layer| layer.energy_mj.is_some());
    let mut titles = vec!["layer", "kernel", "splits", "zero weights", "zero results", "us", "share"];
    if has_energy {
        titles.push("mJ");
    }
    let mut table = new_table(titles);
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".into());
    for layer in &record.layers {
        let mut row = vec![
            layer.name.clone(),
            layer.kernel.clone(),
            layer.splits.to_string(),
            or_none(layer.zero_weights.map(percent)),
            percent(layer.zero_outputs),
            or_none(layer.us().map(|us| format!("{us:.2}"))),
            or_none(layer.share.map(percent)),
        ];
        if has_energy {
            row.push(or_none(layer.energy_mj.map(|mj| format!("{mj:.3}"))));
        }
        table.add_row(row);
    }
    align_numbers(&mut table, 2);
    let sum: f64 = record.layers.iter().filter_map(LayerRecord::us).sum();
    format!("{table}\nAll layers, each by itself: {sum:.1} us. In a row they took: {}.", time(&record.cost))
}

/// Speeds over each twin's, in geometric mean; none of cut networks, which are others.
pub fn summary(records: &[Record]) -> Vec<String> {
    let whole = records.iter().filter(|record| !record.cut);
    let line = |name: &&str| {
        let speeds = Speeds::of(whole.clone().filter_map(|record| record.speedup(name)))?;
        let Speeds { count, mean, least, .. } = speeds;
        Some(format!("{mean:.2} × the speed of {name} ({least:.2} at least, {count} networks)"))
    };
    TWINS.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use lacuna::Device;

    use super::super::layers::tests::layer;
    use super::super::measure;
    use super::super::measure::tests::{HOW, SPARSE};
    use super::super::record::LIMIT;
    use super::*;
    use crate::timing::Timing;

    /// As if a GPU had measured so many microseconds.
    fn measured(us: f64) -> Record {
        let timing = |us: f64| Some(Timing { median: us, min: us, max: us });
        let how = super::super::How { layers: false, twins: false, ..HOW };
        let mut record = measure(&Device::simulator(), &SPARSE, how).unwrap();
        let twin = |us, difference| Twin {
            width: Some(1.3),
            cost: Cost { time_us: timing(us), ..Cost::default() },
            difference,
            paper_frames_per_s: None,
            version: None,
        };
        record.cut = false;
        record.paper_frames_per_s = Some(2874.0);
        record.cost.time_us = timing(us);
        record.frames_per_s = Record::frames_per_s(1, &record.cost);
        record.peers.insert(DENSE, twin(200.0, Some(1e-6)));
        record.peers.insert(CUDNN, twin(400.0, Some(0.5)));
        let same = Twin { paper_frames_per_s: Some(2518.0), width: Some(1.0), ..twin(150.0, None) };
        record.peers.insert(SAME_ACCURACY, same);
        record.layers = vec![layer("a", Some(3.0)), layer("b", None)];
        record
    }

    #[test]
    fn a_network_is_told_beside_its_twins_and_the_paper() {
        let mut record = measured(100.0);
        let text = line(&record);
        for part in [
            "mobilenet-v1 width 1.3: 1 × 32 × 32 nchw f32, 90 % of 1×1 and linear weights pruned, weights drawn\n",
            "100.0 us (100.0 to 100.0), 10000 frames/s (paper, V100: 2874)",
            "dense width 1.3: 200.0 us (200.0 to 200.0), 2.00 × its speed",
            "cudnn width 1.3: 400.0 us (400.0 to 400.0), no speedup",
            "same_accuracy width 1: 150.0 us (150.0 to 150.0), 1.50 × its speed (paper: 1.14 ×)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("WRONG") && !text.contains("masks"));
        record.masks = Some(MaskRecord { real: vec!["a".into(), "b".into()], drawn: 3 });
        assert!(line(&record).contains("DLMC's for a, b; those of 3 other layers are drawn"));
        record.masks = Some(MaskRecord { real: vec![], drawn: 5 });
        assert!(line(&record).contains("none of DLMC's; those of all 5 layers"));
        record.difference = 2.0 * LIMIT;
        assert!(line(&record).contains("WRONG"));
    }

    #[test]
    fn the_summary_leaves_out_what_is_wrong() {
        let records = [measured(100.0), measured(50.0)];
        let lines = summary(&records);
        assert_eq!(
            lines,
            [
                "2.83 × the speed of dense (2.00 at least, 2 networks)",
                "2.12 × the speed of same_accuracy (1.50 at least, 2 networks)"
            ]
        );
        assert!(summary(&[Record { cut: true, ..measured(50.0) }]).is_empty());
    }

    #[test]
    fn layers_have_a_line_each() {
        let record = measured(100.0);
        let text = layers(&record);
        assert!(
            text.contains("| a     | spmm_f32 |") && text.contains("All layers, each by itself: 3.0 us"),
            "{text}"
        );
        assert!(text.contains('–') && !text.contains("mJ"), "{text}");
    }
}
