//! Templates: lazy providers that are files of a module's folder.
//!
//! Policy: whatever a template prints is escaped for HTML, and nothing in a template can switch that off; it sees only
//! the props that the host passes; what it includes lies inside the module's folder; it runs with [`FUEL`] instructions
//! and its output is bounded. Memory is not: a module that doubles a string forty times exhausts it, so the host
//! admits only modules that the user installed.

use std::io::{self, Write};
use std::sync::Arc;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, HtmlEscape};
use serde_json::Value;
use tenon_contract::root::RootGate;

use super::MAX_SURFACE;
use super::pack::{Load, ProviderError, Render};

/// How many instructions a template may run: enough for a table of some ten thousand rows.
const FUEL: u64 = 1_000_000;

/// The largest template file, in bytes.
const MAX_TEMPLATE: u64 = 1024 * 1024;

/// A template by its path inside a module's folder.
pub struct TemplateFile {
    folder: RootGate,
    path: String,
}

impl TemplateFile {
    /// The template at `path` below the folder that `folder` guards.
    #[must_use]
    pub fn new(folder: RootGate, path: &str) -> Self {
        Self { folder, path: path.to_owned() }
    }
}

impl Load for TemplateFile {
    fn load(&self) -> Result<Arc<dyn Render>, ProviderError> {
        let source = read(&self.folder, &self.path)?;
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_formatter(|out, state, value| match state.auto_escape() {
            AutoEscape::Html => minijinja::escape_formatter(out, state, value),
            // `{% autoescape false %}` ends here.
            _ => write!(out, "{}", HtmlEscape(&value.to_string())).map_err(minijinja::Error::from),
        });
        environment.remove_filter("safe");
        let folder = self.folder.clone();
        environment.set_loader(move |name| match read(&folder, name) {
            Ok(source) => Ok(Some(source)),
            Err(error) => {
                Err(minijinja::Error::new(ErrorKind::TemplateNotFound, "not in the module's folder")
                    .with_source(*error))
            }
        });
        environment.add_template_owned(self.path.clone(), source)?;
        Ok(Arc::new(Template { environment, path: self.path.clone() }))
    }
}

fn read(folder: &RootGate, path: &str) -> Result<String, Box<io::Error>> {
    let outside = |error| Box::new(io::Error::new(io::ErrorKind::PermissionDenied, error));
    let admitted = folder.admit_path(path).map_err(outside)?;
    folder.read_to_string(&admitted, MAX_TEMPLATE).map_err(|error| Box::new(io::Error::other(error)))
}

struct Template {
    environment: Environment<'static>,
    path: String,
}

impl Render for Template {
    fn render(&self, props: &Value) -> Result<String, ProviderError> {
        let template = self.environment.get_template(&self.path)?;
        let mut page = Page(Vec::new());
        template.render_captured_to(Serde(props), &mut page)?;
        Ok(String::from_utf8(page.0)?)
    }
}

/// A surface that is being written, and stops being written when it grows too large.
struct Page(Vec<u8>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_SURFACE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
