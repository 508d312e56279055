//! Plots as SVG files.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// A plot, and the name of its file.
pub struct File {
    /// Name of the file, without `.svg`.
    pub name: &'static str,
    /// The title above the plot.
    pub title: &'static str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines of the plot.
    pub lines: Vec<Line>,
    /// The corner of the plot that has the legend.
    pub legend: Corner,
}

/// A corner of a plot, which no line should cross.
#[derive(Clone, Copy)]
pub enum Corner {
    /// The upper left corner.
    UpperLeft,
    /// The lower right corner.
    LowerRight,
}

/// An axis.
#[derive(Clone, Copy)]
pub struct Axis {
    label: &'static str,
    is_log: bool,
    is_bytes: bool,
}

impl Axis {
    /// A linear axis that begins at 0.
    pub fn linear(label: &'static str) -> Axis {
        Axis { label, is_log: false, is_bytes: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &'static str) -> Axis {
        Axis { label, is_log: true, is_bytes: false }
    }

    /// A logarithmic axis of bytes.
    pub fn log_bytes(label: &'static str) -> Axis {
        Axis { label, is_log: true, is_bytes: true }
    }

    fn range(self, values: impl Iterator<Item = f64>) -> Range<f64> {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if self.is_log { low / 1.3..high * 1.3 } else { 0.0..high * 1.08 }
    }

    /// The labels of a logarithmic vertical axis. There are labels between decades, because decades alone would be too
    /// few.
    fn key_points(range: &Range<f64>) -> Vec<f64> {
        let decades = (range.start.log10().floor() as i32)..=(range.end.log10().ceil() as i32);
        let points = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
        points.filter(|point| range.contains(point)).collect()
    }

    fn text(self, value: f64) -> String {
        let (value, unit) = match value {
            _ if !self.is_bytes => (value, ""),
            value if value >= 1e9 => (value / 1e9, " GB"),
            value if value >= 1e6 => (value / 1e6, " MB"),
            value if value >= 1e3 => (value / 1e3, " KB"),
            value => (value, " B"),
        };
        if value == 0.0 || (1e-4..1e5).contains(&value) {
            format!("{}{unit}", (value * 1e5).round() / 1e5)
        } else {
            format!("{value:e}{unit}")
        }
    }
}

/// A line of a plot.
pub struct Line {
    label: String,
    points: Vec<(f64, f64)>,
    color: RGBColor,
    drawn: Drawn,
}

/// The style of a line.
#[derive(Clone, Copy, PartialEq)]
enum Drawn {
    /// A line through the points, with the points.
    Solid,
    /// A dashed line through the points, with the points.
    Dashed,
    /// A line without its points.
    Curve,
    /// Points without a line.
    Points,
}

// Colours that people with colour-blindness can distinguish (the palette of Okabe and Ito).
const BLUE: RGBColor = RGBColor(0, 114, 178);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(110, 110, 110);
const PALETTE: [RGBColor; 8] = [
    BLUE,
    ORANGE,
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    GREY,
];

impl Line {
    /// A line for Rollcall's figures.
    pub fn ours(label: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { label: label.into(), points, color: BLUE, drawn: Drawn::Solid }
    }

    /// A line for the figures that Rollcall is compared with.
    pub fn theirs(label: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { color: ORANGE, ..Line::ours(label, points) }
    }

    /// A line for the limit that no implementation can pass.
    pub fn floor(label: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { color: GREY, ..Line::ours(label, points) }.dashed()
    }

    /// One of many lines, in the colour with this number.
    pub fn nth(number: usize, label: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { color: PALETTE[number % PALETTE.len()], ..Line::ours(label, points) }
    }

    /// The same line, dashed.
    pub fn dashed(self) -> Line {
        Line { drawn: Drawn::Dashed, ..self }
    }

    /// The same line, without its points.
    pub fn curve(self) -> Line {
        Line { drawn: Drawn::Curve, ..self }
    }

    /// Points without a line, which the legend leaves out.
    pub fn points(self) -> Line {
        Line { drawn: Drawn::Points, ..self }
    }
}

/// Writes the plot into `folder`.
pub fn write(folder: &Path, file: &File) -> Result<(), Box<dyn Error>> {
    let points = || file.lines.iter().flat_map(|line| line.points.iter());
    let x = file.x.range(points().map(|point| point.0));
    let y = file.y.range(points().map(|point| point.1));
    match (file.x.is_log, file.y.is_log) {
        (true, true) => draw(folder, file, x.log_scale(), y.clone().log_scale().with_key_points(Axis::key_points(&y))),
        (true, false) => draw(folder, file, x.log_scale(), y),
        (false, true) => draw(folder, file, x, y.clone().log_scale().with_key_points(Axis::key_points(&y))),
        (false, false) => draw(folder, file, x, y),
    }
}

fn draw<X, Y>(folder: &Path, file: &File, x: X, y: Y) -> Result<(), Box<dyn Error>>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    const FONT: &str = "sans-serif";
    let path = folder.join(format!("{}.svg", file.name));
    let root = SVGBackend::new(&path, (860, 520)).into_drawing_area();
    // A white background keeps the text readable on dark pages.
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(file.title, (FONT, 22))
        .margin(14)
        .x_label_area_size(56)
        .y_label_area_size(72)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(file.x.label)
        .y_desc(file.y.label)
        .x_label_formatter(&|value| file.x.text(*value))
        .y_label_formatter(&|value| file.y.text(*value))
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 17))
        .bold_line_style(BLACK.mix(0.14))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for line in &file.lines {
        let (color, drawn) = (line.color, line.drawn);
        let style = color.stroke_width(2);
        let points = line.points.iter().copied();
        let series = match drawn {
            Drawn::Dashed => Some(chart.draw_series(DashedLineSeries::new(points, 7, 4, style))?),
            Drawn::Solid | Drawn::Curve => Some(chart.draw_series(LineSeries::new(points, style))?),
            Drawn::Points => None,
        };
        if let Some(series) = series {
            series.label(line.label.as_str()).legend(move |(x, y)| {
                let dash = |from: i32, to: i32| PathElement::new(vec![(x + from, y), (x + to, y)], style);
                let is_dashed = drawn == Drawn::Dashed;
                let (first, second) = if is_dashed { (dash(0, 8), dash(14, 22)) } else { (dash(0, 11), dash(11, 22)) };
                EmptyElement::at((0, 0)) + first + second
            });
        }
        if drawn != Drawn::Curve {
            chart.draw_series(line.points.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
        }
    }
    chart
        .configure_series_labels()
        .position(match file.legend {
            Corner::UpperLeft => SeriesLabelPosition::UpperLeft,
            Corner::LowerRight => SeriesLabelPosition::LowerRight,
        })
        .label_font((FONT, 15))
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}
