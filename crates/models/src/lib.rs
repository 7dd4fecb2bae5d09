//! Sparse models to run and to measure, as data on the host: nothing here computes them.
//!
//! [`challenge`] is the Sparse DNN Graph Challenge: its layers and its images, made here bit for bit or read from
//! its files.

pub mod challenge;
