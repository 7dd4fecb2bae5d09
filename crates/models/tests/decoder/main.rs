//! The decoder on the simulator, against its oracle.

mod refusals;
mod steps;

use lacuna_models::decoder::Config;

/// Small sizes.
fn config() -> Config {
    Config { sentences: 2, beams: 3, vocabulary: 60, hidden: 12, inner: 20, ..Config::default() }
}
