//! Pictures as SVG: bars and graphs, drawn from numbers, with all text escaped.
//!
//! Colours are classes, so that light and dark pages use the same picture.

mod bars;
mod graph_layout;

pub(crate) use bars::{BudgetBar, ToolStats, budget_bar, bytes_chart, latency_chart};
pub(crate) use graph_layout::{Graph, GraphEdge, GraphNode, MAX_NODES, graph};
