//! The picture: what the gateway is asked for, and what that costs everybody else, second by second.

use super::scenario::Scenario;
use super::tally::{Second, Tally};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Draws naive beside ours and no retries, as the text of an SVG. The same tallies give the same bytes.
///
/// # Errors
/// What the plotting library has to say.
pub(crate) fn draw(scenario: &Scenario, curves: &[Curve<'_>]) -> Result<String, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (760, 560)).into_drawing_area();
        area.fill(&WHITE)?;
        let (upper, lower) = area.split_vertically(300);
        let tokens = Panel {
            title: "Tokens asked of the gateway, a second (fleet and public)",
            most: 25_000.0,
            value: |s| (s.fleet_offered + s.public_offered) as f64,
            label: |v| format!("{v:.0}"),
            limit: Some(scenario.bucket.rate as f64),
        };
        tokens.draw(&upper, scenario, curves)?;
        let refused = Panel {
            title: "Unrelated public requests answered with 429",
            most: 75.0,
            value: |s| 100.0 * s.public_refused as f64 / s.public_offered.max(1) as f64,
            label: |v| format!("{v:.0} %"),
            limit: None,
        };
        refused.draw(&lower, scenario, curves)?;
        area.present()?;
    }
    Ok(svg)
}

/// One client's run.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) tally: &'a Tally,
    pub(crate) colour: RGBColor,
}

/// One of the two charts.
struct Panel {
    title: &'static str,
    most: f64,
    value: fn(&Second) -> f64,
    label: fn(&f64) -> String,
    /// A line across: what the account may draw.
    limit: Option<f64>,
}

impl Panel {
    fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        scenario: &Scenario,
        curves: &[Curve<'_>],
    ) -> Result<(), Box<dyn Error>> {
        let seconds = scenario.arrivals_end().as_secs_f64();
        let fault = scenario.fault_begins().as_secs_f64()..scenario.fault_ends().as_secs_f64();
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, ("sans-serif", 20))
            .margin(8)
            .margin_right(16)
            .x_label_area_size(38)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..seconds, 0.0..self.most)?;
        let fault = [(fault.start, 0.0), (fault.end, self.most)];
        chart.draw_series([Rectangle::new(fault, RGBColor(245, 238, 225).filled())])?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(215, 215, 215))
            .x_desc("seconds; the callee fails every request in the shaded time")
            .x_label_formatter(&|v| format!("{v:.0}"))
            .y_labels(5)
            .y_label_formatter(&self.label)
            .label_style(("sans-serif", 16))
            .draw()?;
        if let Some(limit) = self.limit {
            let style = RGBColor(30, 30, 30).stroke_width(1);
            let line = DashedLineSeries::new([(0.0, limit), (seconds, limit)], 6, 4, style);
            chart.draw_series(line)?.label("the account's rate").legend(move |(x, y)| line_of(x, y, style));
        }
        for curve in curves {
            let style = curve.colour.stroke_width(2);
            let points = curve.tally.seconds.iter().enumerate();
            let points =
                points.map(|(second, counts)| (second as f64 + 0.5, (self.value)(counts).min(self.most)));
            chart
                .draw_series(LineSeries::new(points, style))?
                .label(curve.name)
                .legend(move |(x, y)| line_of(x, y, style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .margin(6)
            .legend_area_size(20)
            .background_style(WHITE)
            .border_style(RGBColor(215, 215, 215))
            .label_font(("sans-serif", 14))
            .draw()?;
        Ok(())
    }
}

fn line_of(x: i32, y: i32, style: ShapeStyle) -> PathElement<(i32, i32)> {
    PathElement::new(vec![(x, y), (x + 18, y)], style)
}
