//! Networks: their sizes, and what they compute on the simulator.
mod common;
mod counts;
mod cross_attention;
mod errors;
mod gaps;
mod half_values;
mod layers;
mod memory;
mod models;
mod oracle;
mod transformer;
mod transformer_base;
