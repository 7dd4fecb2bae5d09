//! A network of sparse layers, and its training.
use lacuna::{Buffer, Device, Result, Stream};

use crate::images::{CLASSES, Images};
use crate::layer::{Gradients, Layer, Parameters, Shape};
use crate::loss::Loss;

/// What a network is.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Neurons of each hidden layer.
    pub(crate) hidden: Vec<usize>,
    /// The part of weights that is not zero, in hidden layers.
    pub(crate) density: f64,
    /// The same in the last layer.
    pub(crate) last_density: f64,
    /// Images at once; not 0.
    pub(crate) batch: usize,
    /// Of the patterns and the weights to start from.
    pub(crate) seed: u64,
}

impl Options {
    /// The layers for images of so many pixels.
    fn shapes(&self, inputs: usize) -> Vec<Shape> {
        let last = self.hidden.len();
        let widths: Vec<usize> = [inputs].iter().chain(&self.hidden).chain(&[CLASSES]).copied().collect();
        let shape = |(at, pair): (usize, &[usize])| {
            let density = if at == last { self.last_density } else { self.density };
            Shape { inputs: pair[0], outputs: pair[1], density, relu: at < last }
        };
        widths.windows(2).enumerate().map(shape).collect()
    }
}

/// Layers one after another on a device: each but the last with ReLU.
pub(crate) struct Network {
    stream: Stream,
    batch: usize,
    layers: Vec<Layer>,
    /// The images, and what each layer makes of them: inputs or outputs × batch.
    values: Vec<Buffer<f32>>,
}

impl Network {
    /// Draws a network for images of so many pixels.
    ///
    /// # Errors
    /// Densities that are not of 0 to 1; sizes that do not fit 32 bits; what the device says.
    pub(crate) fn draw(device: &Device, inputs: usize, options: &Options) -> Result<Self> {
        let (stream, batch) = (device.stream()?, options.batch);
        let mut values = vec![device.zeros(inputs * batch)?];
        let mut layers = Vec::new();
        for (at, shape) in options.shapes(inputs).iter().enumerate() {
            let weights = shape.draw(options.seed.wrapping_add(at as u64))?;
            layers.push(Layer::new(&stream, weights, shape.relu, batch, at > 0)?);
            values.push(device.zeros(shape.outputs * batch)?);
        }
        Ok(Self { stream, batch, layers, values })
    }

    /// The scores of a batch of images: classes × batch.
    ///
    /// # Errors
    /// What the device says.
    fn forward(&mut self, images: &[f32]) -> Result<Vec<f32>> {
        self.values[0].upload(images)?;
        for (at, layer) in self.layers.iter().enumerate() {
            let (before, after) = self.values.split_at_mut(at + 1);
            layer.forward(&self.stream, before[at].as_slice(), after[0].as_slice_mut())?;
        }
        self.values[self.layers.len()].download(&self.stream)
    }

    /// The loss of a batch of images (pixels × batch) of these classes, and its gradients, layer by layer.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn gradients(&mut self, images: &[f32], labels: &[u8]) -> Result<(Loss, Vec<Gradients>)> {
        let scores = self.forward(images)?;
        let loss = Loss::of(&scores, labels);
        let mut gradients = Vec::with_capacity(self.layers.len());
        let mut slopes = loss.gradient.clone();
        for (layer, x) in self.layers.iter_mut().zip(&self.values).rev() {
            let (of_layer, by_x) = layer.gradients(&self.stream, x.as_slice(), &slopes)?;
            gradients.push(of_layer);
            let Some(by_x) = by_x else { break };
            // X came out of a ReLU, which passes nothing on where it gave 0.
            slopes = by_x;
            let passed = x.download(&self.stream)?;
            slopes.iter_mut().zip(passed).filter(|(_, x)| *x <= 0.0).for_each(|(slope, _)| *slope = 0.0);
        }
        gradients.reverse();
        Ok((loss, gradients))
    }

    /// One step of training.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn step(&mut self, images: &[f32], labels: &[u8], rate: f32) -> Result<Loss> {
        let (loss, gradients) = self.gradients(images, labels)?;
        for (layer, gradients) in self.layers.iter_mut().zip(&gradients) {
            layer.descend(gradients, rate)?;
        }
        Ok(loss)
    }

    /// The scores of all these images, as training computes them: images × classes.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn scores(&mut self, images: &Images) -> Result<Vec<f32>> {
        let all: Vec<usize> = (0..images.len()).collect();
        let mut rows = Vec::with_capacity(images.len() * CLASSES);
        for part in all.chunks(self.batch) {
            let scores = self.forward(&images.columns(part, self.batch))?;
            for column in 0..part.len() {
                rows.extend(scores.iter().skip(column).step_by(self.batch));
            }
        }
        Ok(rows)
    }

    /// Images at once.
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// What the layers have learnt.
    pub(crate) fn parameters(&self) -> Vec<Parameters> {
        self.layers.iter().map(|layer| layer.parameters.clone()).collect()
    }
}
