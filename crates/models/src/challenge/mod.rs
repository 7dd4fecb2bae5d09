//! The Sparse DNN Graph Challenge: deep networks of 32 edges a neuron, on 60,000 images of digits.
//!
//! A network has N neurons a layer and L layers, and each layer computes Y ← min(32, max(0, W·Y + b)), with one column
//! of Y an image. The categories are the images whose last column is not all zero. The official sizes are
//! [`NEURONS`] × [`LAYERS`].
//!
//! | what | made | from files |
//! | --- | --- | --- |
//! | layers | [`Generator`], from a [`Challenge`] | [`tsv::read_layer`], [`binary::read_layer`] |
//! | images | [`images::from_digits`], from MNIST; [`images::drawn`] without it | [`tsv::read_images`] |
//! | categories | by whoever runs the network | [`categories::read`] |
//!
//! Layers are the official ones: all 120 files of 1,024 neurons come out byte for byte. That the random stream
//! starts anew for each N, as it does here, is known of N = 1,024 only. Images differ from the official ones in a few
//! pixels ([`images`] says how many).
//!
//! ```
//! use lacuna_models::challenge::{Challenge, Generator, WEIGHT};
//!
//! let challenge = Challenge::new(1024, 120)?;
//! assert_eq!(challenge.bias(), -0.3);
//! let generator = Generator::new(challenge);
//! // Row = output neuron, column = input neuron.
//! let layer = generator.layer(7)?;
//! assert_eq!(layer.row(0).0.len(), 32);
//! assert!(layer.values().iter().all(|&value| value == WEIGHT));
//! # Ok::<(), lacuna_models::challenge::ChallengeError>(())
//! ```

pub mod binary;
pub mod categories;
mod error;
mod generator;
pub mod gz;
pub mod images;
mod network;
pub mod tsv;
mod twister;

pub use error::ChallengeError;
pub use generator::Generator;
pub use network::{Challenge, EDGES, IMAGES, LAYERS, MAX, NEURONS, WEIGHT};
