//! Host cost: what calls of the library take by the host's clock, beside what the driver and cuSPARSE take for the like, and
//! the memory that their results hold.
mod lookup;
mod record;
mod sampled;
mod spmm;
mod steps;
mod table;

use anyhow::Result;
use lacuna_cases::exit::Usage;

pub use self::record::Record;
use self::steps::Steps;
pub use self::table::of as table;
use crate::measure::{by_types, by_value, check};
use crate::operation::Task;
use crate::session::Session;
use crate::types::{Index, Precision, Reduce};

/// Measures the calls of a problem: a record for each.
///
/// # Errors
/// [`Usage`] for an operation whose calls are not measured, and for what these do not take; what the library says.
pub fn measure(session: &mut Session, task: &Task<'_>) -> Result<Vec<Record>> {
    check(session, task)?;
    let is_asked_for = [
        ("--precision", session.types.precision != Precision::default()),
        ("--prepacked", session.prepacked),
        ("--reduce", session.reduce != Reduce::Sum),
        ("--longest-piece", session.longest_piece.is_some()),
        ("--cold", session.cold.is_some()),
    ];
    if let Some((option, _)) = is_asked_for.into_iter().find(|&(_, is_asked_for)| is_asked_for) {
        return Err(Usage(format!("the host's time is measured without {option}; leave it out")).into());
    }
    let stream = session.device.stream()?;
    match task.op.name {
        "spmm" => by_types!(session, of_spmm(session, task, &stream)),
        "sddmm" => by_types!(session, of_sddmm(session, task, &stream)),
        "attention" => by_types!(session, of_attention(session, task, &stream)),
        "nhot" => match session.types.index {
            Index::U64 => by_value!(session, of_lookup::<_, u64>(session, task, &stream)),
            _ => by_value!(session, of_lookup::<_, u32>(session, task, &stream)),
        },
        other => Err(Usage(format!(
            "the host cost of `{other}` is not measured; of spmm, sddmm, attention and nhot it is"
        ))
        .into()),
    }
}

use self::lookup::measure as of_lookup;
use self::sampled::{of_attention, of_sddmm};
use self::spmm::measure as of_spmm;
