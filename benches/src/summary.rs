//! The end of a sweep: what a suite comes to, for people.
use crate::chosen::{Chosen, right};
use crate::operation::Peer;
use crate::operations::peers_of;
use crate::record::{Record, geometric_mean};
use crate::table::{align_numbers, new_table};
use crate::{papers, suites};

/// Geometric means over all cases, by sparsity, by N (K, d) and by group; losses against each peer; and the papers' numbers
/// beside ours. Wrong results, ours and the peers', are left out, and counted. Nothing for no records.
pub(crate) fn of(records: &[Record], machine: &str) -> String {
    let (records, left_out) = right(Chosen::of(records, machine).records().iter().copied());
    let left_out = left_out.map_or_else(String::new, |line| format!("\n{line}\n"));
    let chosen = Chosen::of(&records, machine);
    let Some(first) = chosen.records().first() else { return left_out };
    let measured = first.time_us.is_some();
    let ours =
        if measured { first.machine.device.clone() } else { format!("model of {machine}, this sample") };
    let caches = if first.cold { ", cold caches" } else { "" };
    let mut text = format!("{left_out}\nGeometric means, {ours}{caches}:\n\n{}", means(&chosen));
    if let Some(losses) = losses(&chosen) {
        text.push_str(&format!("\n\n{losses}"));
    }
    if let Some(papers) = papers::table(&first.suite, &first.dtype, &chosen, &ours) {
        text.push_str(&format!("\n\nPublished beside ours:\n\n{papers}"));
    }
    text
}

/// The peers that some record has.
fn peers(chosen: &Chosen<'_>) -> Vec<Peer> {
    let mut peers = peers_of(chosen.records().iter().copied());
    peers.retain(|(peer, _)| chosen.speedups(peer).next().is_some());
    peers
}

fn means(chosen: &Chosen<'_>) -> String {
    let peers = peers(chosen);
    let mut header = vec!["cases".to_string(), "count".into(), chosen.rate_title().into()];
    header.extend(peers.iter().map(|(_, title)| format!("× {title}")));
    let mut table = new_table(header);
    let mut add = |name: &str, part: &Chosen<'_>| {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            geometric_mean(values).map_or_else(|| "–".into(), |mean| format!("{mean:.2}"))
        };
        let mut row = vec![name.to_string(), part.records().len().to_string(), mean(&mut part.rates())];
        row.extend(peers.iter().map(|(peer, _)| mean(&mut part.speedups(peer))));
        table.add_row(row);
    };
    add("all", chosen);
    for part in parts(chosen) {
        add(&part.0, &part.1);
    }
    align_numbers(&mut table, 1);
    table.to_string()
}

/// The parts of a suite, where there are several: by sparsity, by N (K, d), by group, and by how uneven rows are, where the suite
/// is about that.
fn parts<'a>(chosen: &Chosen<'a>) -> Vec<(String, Chosen<'a>)> {
    let by_sparsity =
        split(chosen, |record| (record.level.unwrap_or(record.sparsity) * 100.0).round() as usize);
    let by_width = split(chosen, |record| record.width());
    let by_group = split(chosen, |record| record.group.as_str());
    let by_cov = split(chosen, |record| {
        let cov = record.cov.filter(|_| suites::is_by_cov(&record.suite));
        cov.map(|cov| (cov * 100.0).round() as u32)
    });
    let is_by_sparsity = chosen.records().iter().all(|record| record.operation().is_by_sparsity);
    let by_sparsity = by_sparsity.into_iter().filter(|_| is_by_sparsity);
    let mut parts = Vec::new();
    parts.extend(by_sparsity.map(|(percent, part)| (format!("{percent} % zeros"), part)));
    let width = |part: &Chosen<'_>| part.records()[0].named_width();
    parts.extend(by_width.into_iter().map(|(_, part)| (width(&part), part)));
    parts.extend(by_group.into_iter().map(|(group, part)| (group.to_string(), part)));
    let cov = |hundredths: u32| format!("CoV {}", f64::from(hundredths) / 100.0);
    parts.extend(by_cov.into_iter().filter_map(|(hundredths, part)| Some((cov(hundredths?), part))));
    parts
}

/// The records by a key, ascending; none where all have the same.
fn split<'a, K: Ord + Copy>(chosen: &Chosen<'a>, key: impl Fn(&'a Record) -> K) -> Vec<(K, Chosen<'a>)> {
    let mut keys: Vec<K> = chosen.records().iter().map(|record| key(record)).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.len() < 2 {
        return Vec::new();
    }
    let part = |wanted: K| (wanted, chosen.those(|record| key(record) == wanted));
    keys.into_iter().map(part).collect()
}

/// A line a peer: how often it is faster than we are, and where most.
fn losses(chosen: &Chosen<'_>) -> Option<String> {
    let lines = peers(chosen).into_iter().map(|(peer, title)| {
        let known: Vec<(f64, &Record)> =
            chosen.records().iter().filter_map(|&record| Some((record.speedup(peer)?, record))).collect();
        let lost = known.iter().filter(|(speedup, _)| *speedup < 1.0).count();
        let worst = known.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let at = worst.map_or_else(String::new, |(speedup, record)| {
            format!("; worst {speedup:.2}× at {}, {}", record.case, record.named_width())
        });
        format!("{lost} of {} lost to {title}{at}", known.len())
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operation::Op;
    use crate::record::tests::record;
    use crate::{attention, nhot, sddmm, softmax};

    #[test]
    fn a_summary_has_means_by_part_and_the_losses() {
        let mut unchosen = record("table", "slow kernel", 0.9, [999.0, 1.0, 1.0]);
        unchosen.chosen = false;
        let records = [
            record("table", "first", 0.7, [100.0, 50.0, 400.0]),
            unchosen,
            record("table", "second", 0.9, [100.0, 200.0, 100.0]),
        ];
        let text = of(&records, "H200");
        let line = |start: &str| {
            let found = text.lines().find(|line| line.trim_start_matches("| ").starts_with(start));
            found.unwrap_or_else(|| panic!("no {start} in\n{text}")).split_whitespace().collect::<String>()
        };
        assert_eq!(line("all"), "|all|2|10.00|2.00|1.00|");
        assert_eq!(line("70 % zeros"), "|70%zeros|1|10.00|4.00|0.50|");
        assert_eq!(line("90 % zeros"), "|90%zeros|1|10.00|1.00|2.00|");
        assert!(!text.contains("N = 128 |"), "one N is no part:\n{text}");
        assert!(text.contains("1 of 2 lost to dense cuBLAS f32; worst 0.50× at first, N = 128"), "{text}");
        assert!(text.contains("0 of 2 lost to cuSPARSE default; worst 1.00× at second"), "{text}");
        assert!(!text.contains("Published"), "no paper has suite table:\n{text}");
        assert!(!text.contains("Left out"), "{text}");
    }

    #[test]
    fn other_operations_have_their_own_widths_peers_and_rates() {
        let of_op = |op: Op, record: Record| Record { op: op.name.into(), ..record };
        let sampled = [32, 64].map(|k| {
            let record = record("sddmm-graphs", "graph", 0.9, [100.0, 50.0, 400.0]);
            Record { k, ..of_op(&sddmm::OPERATION, record) }
        });
        let text = of(&sampled, "H200");
        assert!(text.contains("| K = 32") && text.contains("worst 4.00× at graph, K = 32"), "{text}");

        let mut attended = of_op(&attention::OPERATION, record("attention", "mask", 0.9, [100.0, 1.0, 1.0]));
        attended.peers =
            BTreeMap::from([("cublas_f32_products".into(), attended.peers["cublas_f32"].clone())]);
        let text = of(&[attended], "H200");
        assert!(text.contains("1 of 1 lost to cuBLAS f32, both products, without its softmax"), "{text}");

        let softmax = record("softmax", "mask", 0.9, [100.0, 1.0, 1.0]);
        let text = of(&[of_op(&softmax::OPERATION, Record { bytes: 300_000_000, ..softmax })], "H200");
        assert!(text.contains("TB/s") && text.contains("3.00") && !text.contains("lost"), "{text}");
    }

    #[test]
    fn lookups_are_set_against_copies_whatever_the_table_holds() {
        let lookup = |case: &str, zeros: f64| {
            let mut record = record("nhot", case, zeros, [100.0, 1.0, 1.0]);
            record.peers = BTreeMap::from([("copy".into(), record.peers["cublas_f32"].clone())]);
            record.peers.get_mut("copy").unwrap().time.median = 80.0;
            Record { op: nhot::OPERATION.name.into(), bytes: 300_000_000, n: 512, ..record }
        };
        let text = of(&[lookup("few", 0.99), lookup("many", 0.5)], "H200");
        assert!(text.contains("TB/s") && text.contains("3.00") && text.contains("0.80"), "{text}");
        assert!(text.contains("2 of 2 lost to plain copy of its bytes"), "{text}");
        assert!(!text.contains("% zeros"), "{text}");
    }

    #[test]
    fn each_unevenness_of_rows_has_a_line() {
        let covs = [0.0, 0.25, 1.5];
        let uneven = |cov: f64| Record {
            cov: Some(cov),
            ..record("imbalance", "rows", 0.75, [100.0 * (1.0 + cov), 1.0, 1.0])
        };
        let text = of(&covs.map(uneven), "H200");
        for line in ["| CoV 0 |1|10.00|", "| CoV 0.25 |1|8.00|", "| CoV 1.5 |1|4.00|", "40.0 %"] {
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            assert!(squeeze(&text).contains(&squeeze(line)), "{line} is not in\n{text}");
        }
        // Layers whose rows vary are no such suite.
        let layers = covs.map(uneven).map(|record| Record { suite: "dlmc".into(), ..record });
        assert!(!of(&layers, "H200").contains("CoV"));
    }

    #[test]
    fn wrong_results_are_left_out_and_counted() {
        let mut wrong = record("table", "wrong", 0.9, [1.0, 900.0, 900.0]);
        wrong.error_over_bound = 1.5;
        let mut wrong_peer = record("table", "second", 0.9, [100.0, 200.0, 1.0]);
        wrong_peer.peers.get_mut("cusparse_default").unwrap().error_over_bound = None;
        let mut unchosen = wrong.clone();
        unchosen.chosen = false;
        let records =
            [record("table", "first", 0.7, [100.0, 50.0, 400.0]), wrong.clone(), wrong_peer, unchosen];
        let text = of(&records, "H200");
        let all = text.lines().find(|line| line.starts_with("| all")).unwrap();
        assert_eq!(all.split_whitespace().collect::<String>(), "|all|2|10.00|4.00|1.00|", "{text}");
        assert!(text.contains("out of their bounds: 1 of cuSPARSE default, 1 of ours.\n"), "{text}");
        assert!(text.contains("0 of 1 lost to cuSPARSE default"), "{text}");
        assert_eq!(of(&[wrong], "H200").trim(), "Left out, because they are out of their bounds: 1 of ours.");
    }
}
