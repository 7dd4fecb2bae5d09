//! Records of decoders for people.
use super::record::Record;

/// What a decoder came to, in a few lines.
pub fn line(record: &Record) -> String {
    let Record { sentences, beams, vocabulary, hidden, inner, precision, .. } = record;
    let cut = if record.cut { ", cut to the simulator's size" } else { "" };
    let pruned = if record.sparsity > 0.0 {
        format!(", {:.0} % of the layers' weights pruned", 100.0 * record.sparsity)
    } else {
        String::new()
    };
    let mut text = format!(
        "{sentences} sentences × {beams} beams, {vocabulary} words, {hidden} features ({inner} inside), {precision}{pruned}{cut}\n"
    );
    let time = match (record.time_us, record.us()) {
        (Some(time), _) => format!("{:.1} us ({:.1} to {:.1})", time.median, time.min, time.max),
        (None, Some(us)) => format!("{us:.1} us (model of an H200)"),
        _ => "no time".into(),
    };
    let speeds = record.tokens_per_s.zip(record.hypotheses_per_s);
    let speeds = speeds.map_or_else(String::new, |(tokens, hypotheses)| {
        format!(", {tokens:.0} tokens/s, {hypotheses:.0} hypotheses/s")
    });
    text += &format!("  step: {time}{speeds}\n");
    for part in &record.parts {
        if let Some((us, share)) = part.us().zip(part.share) {
            text += &format!("  {:>12}: {us:8.1} us, {:4.1} %, {}\n", part.name, 100.0 * share, part.kernels);
        }
    }
    let of_which = if record.checked_whole { "" } else { " of a cut decoder" };
    let error = if record.error_over_bound <= 1.0 {
        format!("parts within {:.2} of their bounds", record.error_over_bound)
    } else {
        "not all parts right".into()
    };
    let beams = if record.beams_are_right { "beams right" } else { "beams wrong" };
    let verdict = if record.is_right() { "" } else { "  WRONG" };
    text += &format!(
        "  checked: {} steps{of_which}, {error}, {} beams as the host's and {} tied; whole: logits off by {:.1e} of the greatest (at \
         most {:.0e}), {beams}{verdict}",
        record.checked_steps,
        record.same_beams,
        record.tied_beams,
        record.difference,
        record.limit()
    );
    text
}
