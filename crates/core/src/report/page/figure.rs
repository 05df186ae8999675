//! Figures as plotly.js reads them, with its names of attributes: <https://plotly.com/javascript/reference/>.

use serde::Serialize;
use serde_json::{Value, json};

/// Points and lines of a row, in one of the modes of plotly.js: `markers`, `lines+text`, ... No text appears at the pointer.
pub fn scatter(name: &str, mode: &str, x: impl Serialize, y: impl Serialize) -> Value {
    json!({ "type": "scatter", "name": name, "mode": mode, "x": x, "y": y, "hoverinfo": "skip" })
}

/// Bars of a row, one for each place. No text appears at the pointer.
pub fn bars(name: &str, x: impl Serialize, y: impl Serialize) -> Value {
    json!({ "type": "bar", "name": name, "x": x, "y": y, "hoverinfo": "skip" })
}

/// Makes bars horizontal.
pub fn horizontal(mut bars: Value) -> Value {
    bars["orientation"] = json!("h");
    bars
}

/// Adds a hover text: one for all points, or one for each.
pub fn with_hover_text(mut drawn: Value, text: impl Serialize) -> Value {
    drawn["hoverinfo"] = json!("text");
    drawn["hovertext"] = json!(text);
    drawn
}

/// Shows the values of a point at the pointer.
pub fn with_hover_values(mut drawn: Value) -> Value {
    drawn["hoverinfo"] = json!("all");
    drawn
}

/// Adds a text at each point, in the given position: `top center`, `top right`, ...
pub fn with_text(mut drawn: Value, text: &[String], position: &str) -> Value {
    drawn["text"] = json!(text);
    drawn["textposition"] = json!(position);
    drawn
}

/// Draws markers with this symbol.
pub fn with_symbol(mut drawn: Value, symbol: &str) -> Value {
    drawn["marker"] = json!({ "symbol": symbol });
    drawn
}

/// Intervals around points, from the value of each point and the ends of its interval.
pub fn intervals(points: impl IntoIterator<Item = (f64, (f64, f64))>) -> Value {
    let reaches = points.into_iter();
    let reaches = reaches.map(|(value, (low, high))| (high - value, value - low));
    let (above, below): (Vec<f64>, Vec<f64>) = reaches.unzip();
    json!({ "type": "data", "symmetric": false, "array": above, "arrayminus": below })
}

/// A line across the whole chart where this axis, `x` or `y`, has a 1.
pub fn line_at_one(axis: &str) -> Value {
    let (at_one, whole) = ((axis, 1.0, 1.0), ("paper", 0.0, 1.0));
    let (x, y) = if axis == "x" {
        (at_one, whole)
    } else {
        (whole, at_one)
    };
    json!({
        "type": "line",
        "layer": "below",
        "xref": x.0, "x0": x.1, "x1": x.2,
        "yref": y.0, "y0": y.1, "y1": y.2,
    })
}
