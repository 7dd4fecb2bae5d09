//! Values that are in the file.
use half::{bf16, f16};

use super::OnnxError;
use super::schema::TensorProto;

/// Numbers of ONNX's types.
const FLOAT: i32 = 1;
const INT32: i32 = 6;
const INT64: i32 = 7;
const BOOL: i32 = 9;
const FLOAT16: i32 = 10;
const DOUBLE: i32 = 11;
const BFLOAT16: i32 = 16;

/// A tensor with its values in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant<'g>(pub(super) &'g TensorProto);

impl Constant<'_> {
    /// Its extents, whose product is the number of its values; an error where they are none.
    pub(super) fn shape(&self) -> Result<Vec<usize>, OnnxError> {
        let extent = |&extent: &i64| usize::try_from(extent).map_err(|_| self.wrong_shape());
        self.0.dims.iter().map(extent).collect()
    }

    /// Its values as `f32`; those of `f64` are rounded.
    pub(super) fn numbers(&self) -> Result<Vec<f32>, OnnxError> {
        let Self(tensor) = self;
        let half = |of: fn(u16) -> f32| {
            let of = move |&number: &i32| of(number as u16);
            tensor.int32_data.iter().map(of).collect()
        };
        let of_f16 = |bits| f16::from_bits(bits).to_f32();
        let of_bf16 = |bits| bf16::from_bits(bits).to_f32();
        let has_raw = !tensor.raw_data.is_empty();
        self.checked(match tensor.data_type {
            FLOAT if has_raw => self.raw(f32::from_le_bytes)?,
            FLOAT => tensor.float_data.clone(),
            DOUBLE if has_raw => self.raw(|bytes| f64::from_le_bytes(bytes) as f32)?,
            DOUBLE => tensor.double_data.iter().map(|&number| number as f32).collect(),
            FLOAT16 if has_raw => self.raw(|bytes| of_f16(u16::from_le_bytes(bytes)))?,
            FLOAT16 => half(of_f16),
            BFLOAT16 if has_raw => self.raw(|bytes| of_bf16(u16::from_le_bytes(bytes)))?,
            BFLOAT16 => half(of_bf16),
            _ => return Err(self.wrong_type("numbers of type FLOAT, DOUBLE, FLOAT16 or BFLOAT16")),
        })
    }

    /// Its values as integers, truths as 0 and 1.
    pub(super) fn integers(&self) -> Result<Vec<i64>, OnnxError> {
        let Self(tensor) = self;
        let has_raw = !tensor.raw_data.is_empty();
        self.checked(match tensor.data_type {
            INT64 if has_raw => self.raw(i64::from_le_bytes)?,
            INT64 => tensor.int64_data.clone(),
            INT32 if has_raw => self.raw(|bytes| i32::from_le_bytes(bytes).into())?,
            BOOL if has_raw => self.raw(|[byte]: [u8; 1]| byte.into())?,
            INT32 | BOOL => tensor.int32_data.iter().map(|&number| number.into()).collect(),
            _ => return Err(self.wrong_type("integers of type INT64, INT32 or BOOL")),
        })
    }

    /// Values whose bytes are in the file one after another.
    fn raw<const N: usize, T>(&self, of: impl Fn([u8; N]) -> T) -> Result<Vec<T>, OnnxError> {
        let (values, rest) = self.0.raw_data.as_chunks::<N>();
        if rest.is_empty() {
            return Ok(values.iter().map(|&bytes| of(bytes)).collect());
        }
        Err(self.error("whole values", format!("{} bytes", self.0.raw_data.len())))
    }

    /// Values, if they are as many as the extents say.
    fn checked<T>(&self, values: Vec<T>) -> Result<Vec<T>, OnnxError> {
        if self.0.data_location != 0 {
            let expected = "values in the file: save it without external data";
            return Err(self.error(expected, "a tensor whose values are in another file"));
        }
        let shape = self.shape()?;
        let elements = shape.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent));
        if elements == values.len() {
            return Ok(values);
        }
        Err(self.error("as many values as its shape says", format!("{} of {shape:?}", values.len())))
    }

    fn wrong_shape(&self) -> OnnxError {
        self.error("extents of at least 0", format!("{:?}", self.0.dims))
    }

    fn wrong_type(&self, expected: &'static str) -> OnnxError {
        self.error(expected, format!("type {} of ONNX", self.0.data_type))
    }

    fn error(&self, expected: &'static str, got: impl Into<String>) -> OnnxError {
        OnnxError::Tensor { name: self.0.name.clone(), expected, got: got.into() }
    }
}
