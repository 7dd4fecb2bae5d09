//! The whole suite on the simulator.
use lacuna_cases::data::{Data, FOLDERS};
use lacuna_verify::report;
use lacuna_verify::run::run;
use lacuna_verify::target::Target;
use lacuna_verify::{Options, cases};

#[test]
fn every_case_holds() {
    let mut data = Data::find(None).unwrap();
    for folder in FOLDERS {
        data.unpack(folder);
    }
    let cases = cases(Options::default(), &data);
    let records = run(&cases, &Target::simulator(), 1, |_| {}).unwrap();
    let text = report::text(&records, |record| format!("lacuna-verify --device sim --only {}", record.case));
    println!("{text}");
    let counts = report::Counts::of(&records);
    assert_eq!(counts.failed, 0, "{text}");
    assert!(counts.passed > 90, "{text}");
}
