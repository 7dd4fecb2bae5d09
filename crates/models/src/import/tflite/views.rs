//! Operators that move elements, or interpolate between them.
use super::ImportError;
use super::importer::{Importer, Value};
use super::operator::Place;
use crate::files::tflite::Activation;
use crate::network::{Concat, DepthToSpace, FlattenNhwc, Resize, Sampling};

impl<'m> Importer<'m> {
    /// Channels of maps, or features that were flattened, side by side.
    pub(super) fn concat(
        &mut self,
        at: Place<'m>,
        axis: i32,
        activation: Activation,
    ) -> Result<Value, ImportError> {
        let count = at.operator.inputs.len();
        let values = (0..count).map(|input| self.value(at, input)).collect::<Result<Vec<Value>, _>>()?;
        let Some(first) = values.first() else { return Err(at.operand(0, "a tensor", "none")) };
        let rank = first.dims.len() + 1;
        let from_start = if axis < 0 { i64::from(axis) + rank as i64 } else { i64::from(axis) };
        // Elements of an image's first dimension are one after another, and so are channels.
        let joined = if first.dims.len() == 3 { 2 } else { 0 };
        if from_start != joined as i64 + 1 {
            return Err(at.wrong("the dimension", "channels of maps, or the first one of features", axis));
        }
        let mut dims = first.dims.clone();
        dims[joined] = 0;
        for (input, value) in values.iter().enumerate() {
            let fits = value.dims.len() == dims.len()
                && (0..dims.len()).all(|d| d == joined || value.dims[d] == dims[d]);
            if !fits {
                let got = format!("{:?} beside {:?} of an image", value.dims, first.dims);
                return Err(at.operand(input, "the same shape but for that dimension", got));
            }
            dims[joined] = dims[joined].saturating_add(value.dims[joined]);
        }
        let id = self.layer(at, "", Concat, values.iter().map(|value| value.id).collect())?;
        let id = self.activated(at, id, activation)?;
        Ok(Value { id, dims, margin: None })
    }

    pub(super) fn depth_to_space(&mut self, at: Place<'m>, block: usize) -> Result<Value, ImportError> {
        let value = self.value(at, 0)?;
        self.expect_maps(at, &value)?;
        let id = self.layer(at, "", DepthToSpace::new(block), vec![value.id])?;
        Ok(self.maps_of(id))
    }

    pub(super) fn resize(
        &mut self,
        at: Place<'m>,
        align_corners: bool,
        half_pixel_centers: bool,
    ) -> Result<Value, ImportError> {
        let sampling = match (align_corners, half_pixel_centers) {
            (false, true) => Sampling::HalfPixel,
            (true, false) => Sampling::AlignCorners,
            (false, false) => Sampling::Asymmetric,
            (true, true) => {
                return Err(at.wrong("align_corners and half_pixel_centers", "one of them at most", true));
            }
        };
        let value = self.value(at, 0)?;
        self.expect_maps(at, &value)?;
        let size = self.integers(at, 1)?;
        let sizes: Option<Vec<usize>> = size.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let Some(&[rows, columns]) = sizes.as_deref() else {
            return Err(at.operand(1, "rows and columns", format!("{size:?}")));
        };
        let id = self.layer(at, "", Resize::bilinear([rows, columns], sampling), vec![value.id])?;
        Ok(self.maps_of(id))
    }

    /// Another shape of each image's elements: maps become rows of features.
    pub(super) fn reshape(&mut self, at: Place<'m>, shape: Option<&[i32]>) -> Result<Value, ImportError> {
        let value = self.value(at, 0)?;
        let wanted = match (at.input(1), shape) {
            (Some(_), _) => self.integers(at, 1)?,
            (None, Some(shape)) => shape.to_vec(),
            (None, None) => return Err(at.operand(1, "a shape", "none")),
        };
        let of = self.drafts.shape(value.id);
        let Some(dims) = image_of(&wanted, self.images, of.image_len()) else {
            let expected = "a shape that keeps images apart, of as many elements";
            return Err(at.operand(1, expected, format!("{wanted:?} for {of}")));
        };
        // Maps again only where they are one pixel, or were maps of this shape before.
        let becomes_maps = dims.len() == 3 && dims[..2] != [1, 1] && dims != value.dims;
        if becomes_maps {
            let got = format!("{wanted:?} for {:?} of an image", value.dims);
            return Err(at.operand(1, "features: one or two dimensions of an image", got));
        }
        let is_flat = of.pixels() == 1 || dims == value.dims;
        let id = if is_flat { value.id } else { self.layer(at, "", FlattenNhwc, vec![value.id])? };
        Ok(Value { id, dims, margin: None })
    }
}

/// The dimensions of an image in a shape, of which one may be −1; none where images would not stay apart.
fn image_of(wanted: &[i32], images: usize, len: usize) -> Option<Vec<usize>> {
    let (&first, rest) = wanted.split_first().filter(|(_, rest)| (1..=3).contains(&rest.len()))?;
    let is_open = first == -1 && !rest.contains(&-1);
    if !is_open && usize::try_from(first) != Ok(images) {
        return None;
    }
    let known = rest.iter().filter(|&&extent| extent != -1);
    let known = known.map(|&extent| usize::try_from(extent).ok()).collect::<Option<Vec<usize>>>()?;
    let product = known.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent));
    let open = match rest.len() - known.len() {
        0 if product == len => 1,
        1 if product > 0 && len.is_multiple_of(product) => len / product,
        _ => return None,
    };
    Some(rest.iter().map(|&extent| usize::try_from(extent).unwrap_or(open)).collect())
}
