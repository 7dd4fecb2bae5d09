//! Records for people.
use super::Record;
use crate::table::{align_numbers, new_table};

/// A table of records: a line each.
pub fn of(records: &[Record]) -> String {
    let columns = ["case", "call", "us", "least", "allocations", "host bytes", "device bytes", "others, us"];
    let mut table = new_table(columns);
    for record in records {
        let others = record.peers.iter().map(|(name, time)| format!("{name} {:.2}", time.median));
        table.add_row([
            format!("{} {}", record.op, record.case),
            format!("{} {}", record.call, record.algorithm),
            format!("{:.2}", record.host_us.median),
            format!("{:.2}", record.host_us.min),
            record.allocations.to_string(),
            record.host_bytes.to_string(),
            record.device_bytes.to_string(),
            others.collect::<Vec<_>>().join(", "),
        ]);
    }
    align_numbers(&mut table, 2);
    table.to_string()
}
