//! A picture of one inference: the images that are left, and the time of each layer.
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use plotters::prelude::*;
use serde::Deserialize;

use super::part::images_of_layers;
use crate::picture::{AXES, Drawn, GRID, WIDTH};

/// What is drawn of a record.
#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    op: String,
    neurons: usize,
    layers: usize,
    images: usize,
    device: String,
    live: Vec<(usize, usize)>,
    layer_us: Option<Vec<f64>>,
}

const IMAGES: RGBColor = RGBColor(0, 110, 180);
const TIMES: RGBColor = RGBColor(200, 80, 0);

impl Profile {
    /// The first record of a network that has the time of each layer; none where the file has other records.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let is_drawn = |profile: &Self| profile.op == "spdnn" && profile.layer_us.is_some();
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).find(is_drawn))
    }

    /// Writes the picture, as SVG.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn draw(&self, path: &Path) -> Result<()> {
        self.picture(path).map_err(|error| anyhow!("{} cannot be drawn: {error}", path.display()))
    }

    /// Layers from 1, with the images that each works on.
    fn images(&self) -> Vec<(f64, f64)> {
        let images = images_of_layers(1..self.layers + 1, self.images, &self.live);
        images.enumerate().map(|(at, left)| (at as f64 + 1.0, left as f64)).collect()
    }

    fn times(&self) -> Vec<(f64, f64)> {
        let times = self.layer_us.iter().flatten();
        times.enumerate().map(|(at, &us)| (at as f64 + 1.0, us)).collect()
    }

    fn picture(&self, path: &Path) -> Drawn {
        let (images, times) = (self.images(), self.times());
        let root = SVGBackend::new(path, (WIDTH, AXES)).into_drawing_area();
        root.fill(&WHITE)?;
        let title = format!("{} × {} on {}", self.neurons, self.layers, self.device);
        let x = 1.0..self.layers as f64;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .right_y_label_area_size(70)
            .build_cartesian_2d(x.clone().log_scale(), range(&images).log_scale())?
            .set_secondary_coord(x.log_scale(), range(&times).log_scale());
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(WHITE)
            .x_desc("layer")
            .y_desc("images that a layer works on")
            .axis_desc_style(("sans-serif", 16))
            .draw()?;
        chart
            .configure_secondary_axes()
            .y_desc("microseconds of a layer")
            .axis_desc_style(("sans-serif", 16).into_text_style(&root).color(&TIMES))
            .draw()?;
        chart.draw_series(LineSeries::new(images, IMAGES.stroke_width(2)))?;
        chart.draw_secondary_series(times.iter().map(|&at| Circle::new(at, 3, TIMES.filled())))?;
        root.present()?;
        Ok(())
    }
}

/// From below the least to above the greatest.
fn range(points: &[(f64, f64)]) -> Range<f64> {
    let (low, high) =
        points.iter().fold((f64::INFINITY, 1.0_f64), |(low, high), &(_, y)| (low.min(y), high.max(y)));
    0.8 * low.clamp(0.1, high)..1.25 * high
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"op": "spdnn", "neurons": 64, "layers": 4, "images": 90, "device": "a GPU",
        "live": [[1, 50], [3, 20], [4, 10]], "layer_us": [9.0, 5.0, 4.0, 2.5]}"#;

    #[test]
    fn a_layer_works_on_the_images_of_the_last_list() {
        let profile: Profile = serde_json::from_str(LINE).unwrap();
        assert_eq!(profile.images(), [(1.0, 90.0), (2.0, 50.0), (3.0, 50.0), (4.0, 20.0)]);
        assert_eq!(profile.times()[3], (4.0, 2.5));
    }

    #[test]
    fn the_first_record_with_times_is_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let [records, picture] = ["records.jsonl", "picture.svg"].map(|name| folder.path().join(name));
        let line = LINE.replace('\n', "");
        let untimed = line.replace("layer_us", "other");
        std::fs::write(&records, format!("{{\"op\": \"spmm\"}}\n{untimed}\n{line}\n")).unwrap();
        Profile::read(&records).unwrap().unwrap().draw(&picture).unwrap();
        assert!(std::fs::read_to_string(&picture).unwrap().contains("64 × 4 on a GPU"));
        std::fs::write(&records, untimed).unwrap();
        assert!(Profile::read(&records).unwrap().is_none());
    }
}
