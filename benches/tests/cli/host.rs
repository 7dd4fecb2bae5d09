//! Suite `host`, on the simulator.
use serde_json::Value;

use crate::support::{bench, json};

#[test]
fn the_hosts_time_is_told_call_by_call() {
    let records = json(&["sweep", "--suite", "host", "--samples", "2"]);
    let of = |op: &str| records.iter().filter(|record| record["op"] == op).collect::<Vec<_>>();
    let calls = |op: &str| of(op).iter().map(|record| record["call"].as_str().unwrap()).collect::<Vec<_>>();
    let of_spmm = ["check", "new", "plan", "plan again", "check, new, plan", "prepacked", "run"];
    assert_eq!(calls("spmm"), of_spmm);
    assert!(calls("sddmm").starts_with(&["plan"]) && calls("sddmm").ends_with(&["run"]));
    assert_eq!(calls("attention"), ["from lists", "plan", "mask blocks", "run"]);
    assert_eq!(calls("nhot"), ["new", "from indices", "plan", "sort for gradients", "run"]);
    let number = |record: &Value, field: &str| record[field].as_u64().unwrap();
    for record in &records {
        let [min, median, max] = ["min", "median", "max"].map(|of| record["host_us"][of].as_f64().unwrap());
        assert!(min <= median && median <= max);
        assert!(record.get("peers").is_none(), "there is no driver");
    }
    // Columns and values, with some to spare, and a record a row; bytes that a check holds are the arrays it was given.
    let [check, new] = [of("spmm")[0], of("spmm")[1]];
    let (nnz, m) = (number(new, "nnz"), number(new, "m"));
    let held = number(new, "device_bytes");
    assert!((8 * nnz + 16 * m..8 * (nnz + 24) + 16 * m).contains(&held), "{held} bytes of {nnz} nonzeros");
    assert_eq!((number(check, "device_bytes"), number(check, "allocations")), (0, 0));
    assert!(number(new, "allocations") > 0, "the program counts");
}

#[test]
fn what_the_hosts_time_does_not_take_is_refused() {
    for (options, says) in [
        (&["--index", "u64", "--limit", "1"][..], "u64 is neither"),
        (&["--precision", "tf32"][..], "without --precision"),
        (&["--reduce", "max", "--limit", "1"][..], "without --reduce"),
    ] {
        let output = bench(&[&["sweep", "--suite", "host", "--device", "sim"], options].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(says), "{told}");
    }
}
