//! The frame that all operations share.
//!
//! An operation says what its [`Problem`] is: which entry points are legal for it, by which algorithm each can be asked for,
//! and what it costs. The frame does the rest: it ranks the candidates ([`choose`]), keeps the one for each alignment
//! ([`Selection`]), cuts what a grid cannot hold ([`spans`]), and launches ([`launch`]).
mod activation;
mod choice;
mod launch;
pub(crate) mod layout;
mod maps;
mod model;
mod options;
mod selection;
mod turn;

pub use activation::Activation;
pub use choice::Choice;
pub(crate) use choice::{Problem, choose, find, illegal};
pub(crate) use launch::{MAX_GRID_X, MAX_GRID_YZ, launch, launch_kernel, spans};
pub(crate) use layout::{Layout, MAX_WIDTH, strides};
pub use maps::MapLayout;
pub(crate) use maps::{elements, expect_product_at_most, out_extent, planes, with_planes};
pub(crate) use model::section;
pub use model::{Constant, ModelFile, Provenance, Section};
pub(crate) use options::options;
pub(crate) use selection::{Selection, VECTORS, tells_choice, tunes_selection, widest};
pub(crate) use turn::Turn;
