//! Operators and their options. The numbers are those of TensorFlow Lite's schema, version 3.
use std::sync::Arc;

use super::TfliteError;
use super::flat::Table;

/// An operator of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// What it does.
    pub kind: OperatorKind,
    /// Its inputs, as numbers of tensors; none where an optional one is left out.
    pub inputs: Vec<Option<usize>>,
    /// Its outputs, as numbers of tensors.
    pub outputs: Vec<usize>,
}

/// What an operator does. Feature maps are [images, height, width, channels]; pairs are of height and width.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OperatorKind {
    /// Elementwise sum of two inputs.
    Add {
        /// What follows.
        activation: Activation,
    },
    /// Inputs joined along a dimension.
    Concatenation {
        /// The dimension; counted from the end where it is negative.
        axis: i32,
        /// What follows.
        activation: Activation,
    },
    /// Convolution: of a map, by filters of [outputs, height, width, inputs], with a bias.
    Conv2d {
        /// Strides, padding, activation.
        window: Window,
        /// Steps between taps.
        dilations: [usize; 2],
    },
    /// Channels become pixels: of C channels that come out, channel (y·block + x)·C + c of a pixel is channel c at (y, x) of its square.
    DepthToSpace {
        /// Height and width of a square.
        block: usize,
    },
    /// Depthwise convolution: of a map, by filters of [1, height, width, outputs], with a bias.
    DepthwiseConv2d {
        /// Strides, padding, activation.
        window: Window,
        /// Steps between taps.
        dilations: [usize; 2],
        /// Outputs of each input channel.
        multiplier: usize,
    },
    /// Makes a sparse tensor dense.
    Densify,
    /// Makes `f32` of another type.
    Dequantize,
    /// Maximum of windows.
    MaxPool2d {
        /// Strides, padding, activation.
        window: Window,
        /// The window.
        size: [usize; 2],
    },
    /// Zeros around a tensor, as many as the second input says.
    Pad,
    /// x, or slope·x where it is negative; the second input has the slopes.
    Prelu,
    /// max(x, 0).
    Relu,
    /// Another shape: that of the second input, or this one, of which one extent may be −1.
    Reshape {
        /// The shape, where the operator has one.
        shape: Option<Vec<i32>>,
    },
    /// Bilinear interpolation to the size of the second input.
    ResizeBilinear {
        /// Whether the corners' centres stay at the corners.
        align_corners: bool,
        /// Whether pixels have their centres at halves.
        half_pixel_centers: bool,
    },
    /// Another, by its code (`BuiltinOperator`).
    Other {
        /// The code.
        code: i32,
        /// The name of a custom operator; else empty.
        name: Arc<str>,
    },
}

/// How an operator goes over a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Steps between outputs.
    pub strides: [usize; 2],
    /// What is around the map.
    pub padding: Padding,
    /// What follows.
    pub activation: Activation,
}

/// What is around a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// As many zeros that there is an output for each stride; an odd one is at the end.
    Same,
    /// None.
    Valid,
}

/// What follows an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// max(x, 0).
    Relu,
    /// x between −1 and 1.
    ReluN1To1,
    /// x between 0 and 6.
    Relu6,
    /// The hyperbolic tangent.
    Tanh,
}

/// An operator's number and code, for errors.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) code: i32,
}

impl Place {
    fn wrong(self, expected: &'static str, got: impl ToString) -> TfliteError {
        let Self { index, code } = self;
        TfliteError::Operator { index, code, expected, got: got.to_string() }
    }

    /// A count that the schema has as a signed number.
    fn count(self, got: i32) -> Result<usize, TfliteError> {
        usize::try_from(got)
            .ok()
            .filter(|&count| count > 0)
            .ok_or_else(|| self.wrong("a number above 0", got))
    }

    fn pair(self, height: i32, width: i32) -> Result<[usize; 2], TfliteError> {
        Ok([self.count(height)?, self.count(width)?])
    }

    fn activation(self, code: i8) -> Result<Activation, TfliteError> {
        Ok(match code {
            0 => Activation::None,
            1 => Activation::Relu,
            2 => Activation::ReluN1To1,
            3 => Activation::Relu6,
            4 => Activation::Tanh,
            _ => return Err(self.wrong("an activation from 0 to 4", code)),
        })
    }

    /// The fields that begin the options of all windows; the activation's is another in each.
    fn window(self, options: Table<'_>, activation: usize) -> Result<Window, TfliteError> {
        let padding = match options.i8(0)? {
            0 => Padding::Same,
            1 => Padding::Valid,
            code => return Err(self.wrong("padding 0 (same) or 1 (valid)", code)),
        };
        let strides = self.pair(options.i32(2, 0)?, options.i32(1, 0)?)?;
        Ok(Window { strides, padding, activation: self.activation(options.i8(activation)?)? })
    }
}

/// Reads what an operator does, from its table; `custom` is the name of a custom one.
pub(super) fn kind(
    operator: Table<'_>,
    custom: &Arc<str>,
    place: Place,
) -> Result<OperatorKind, TfliteError> {
    let options = |of: u8| match (operator.u8(3)?, operator.table(4)?) {
        (got, Some(options)) if got == of => Ok(Some(options)),
        (0, _) | (_, None) => Ok(None),
        (got, _) => Err(place.wrong("its own options", format!("those of type {got}"))),
    };
    let required = |of: u8| options(of)?.ok_or_else(|| place.wrong("options", "none"));
    let activation = |options: Option<Table<'_>>, field| {
        options.map_or(Ok(Activation::None), |options| place.activation(options.i8(field)?))
    };
    Ok(match place.code {
        0 => OperatorKind::Add { activation: activation(options(11)?, 0)? },
        2 => {
            let options = required(10)?;
            OperatorKind::Concatenation {
                axis: options.i32(0, 0)?,
                activation: activation(Some(options), 1)?,
            }
        }
        3 => {
            let options = required(1)?;
            let dilations = place.pair(options.i32(5, 1)?, options.i32(4, 1)?)?;
            OperatorKind::Conv2d { window: place.window(options, 3)?, dilations }
        }
        4 => {
            let options = required(2)?;
            OperatorKind::DepthwiseConv2d {
                window: place.window(options, 4)?,
                dilations: place.pair(options.i32(6, 1)?, options.i32(5, 1)?)?,
                multiplier: place.count(options.i32(3, 0)?)?,
            }
        }
        5 => OperatorKind::DepthToSpace { block: place.count(required(94)?.i32(0, 0)?)? },
        6 => OperatorKind::Dequantize,
        17 => {
            let options = required(5)?;
            let size = place.pair(options.i32(4, 0)?, options.i32(3, 0)?)?;
            OperatorKind::MaxPool2d { window: place.window(options, 5)?, size }
        }
        19 => OperatorKind::Relu,
        22 => {
            let shape = options(17)?.map(|options| options.i32s(0)).transpose()?.flatten();
            OperatorKind::Reshape { shape }
        }
        23 => {
            let options = required(15)?;
            // The first two fields were the size, before it was an input.
            OperatorKind::ResizeBilinear {
                align_corners: options.u8(2)? != 0,
                half_pixel_centers: options.u8(3)? != 0,
            }
        }
        34 => OperatorKind::Pad,
        54 => OperatorKind::Prelu,
        124 => OperatorKind::Densify,
        code => OperatorKind::Other { code, name: custom.clone() },
    })
}
